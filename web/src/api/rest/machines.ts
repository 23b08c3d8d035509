// What subresources.kubevirt.io/v1 answers that is Fairway's own: its OpenAPI document has paths, and no schemas for these.

/** Values of a column; what is not known is null. */
export type Values = (number | null)[];

/** `guestosinfo/usage/history`: columns of the same length, oldest first. */
export interface History {
    intervalSeconds: number;
    time: number[];
    processors: Values;
    residentBytes: Values;
    receivedBytesPerSecond: Values;
    sentBytesPerSecond: Values;
    readBytesPerSecond: Values;
    writtenBytesPerSecond: Values;
    readsPerSecond: Values;
    writesPerSecond: Values;
}
