/** The Agent Host Protocol for pages and programs: types, reducers, mirror, JSON-RPC peer, client. */

export * from "./backoff.ts";
export * from "./client.ts";
export * from "./mirror.ts";
export { ERROR, IDLE, IN_PROGRESS, INPUT_NEEDED, IS_ARCHIVED, IS_READ } from "./reducers/common.ts";
export * from "./reducers/index.ts";
export * from "./rpc.ts";
export type * from "./types.ts";
