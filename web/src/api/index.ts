// The door to the server.

export * from "./errors";
export * from "./hooks";
export * from "./kinds";
export { apply, clusterPath, collectionPath, create, get, list, objectPath, patch, remove, replace, subresource, type Selection } from "./kubernetes";
export { LIVE_MS } from "./repeat";
export { json, PATIENCE_MS, request, withQuery, type Options } from "./request";
export { loginPath, pathIn, session, workspace } from "./session";
export { useStreamState } from "./streams";
