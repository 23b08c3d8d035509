// What is used of noVNC, which has no types of its own.
declare module "@novnc/novnc" {
    export default class RFB extends EventTarget {
        constructor(target: HTMLElement, address: string | WebSocket, options?: { wsProtocols?: string[]; shared?: boolean });
        scaleViewport: boolean;
        resizeSession: boolean;
        background: string;
        disconnect(): void;
        /** Both up and down, unless it says which. */
        sendKey(keysym: number, code: string, down?: boolean): void;
        focus(): void;
    }
}
