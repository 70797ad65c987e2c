/** One table: kind of channel → reducer. */

import { chatReducer } from "./chat.ts";
import type { Reducer } from "./common.ts";
import { annotationsReducer, canvasReducer, changesetReducer, rootReducer, terminalReducer } from "./others.ts";
import { sessionReducer } from "./session.ts";

export const REDUCERS = {
  root: rootReducer,
  session: sessionReducer,
  chat: chatReducer,
  terminal: terminalReducer,
  changeset: changesetReducer,
  annotations: annotationsReducer,
  canvas: canvasReducer,
} satisfies Record<string, Reducer>;

export type ChannelKind = keyof typeof REDUCERS;

const SCHEMES: Record<string, ChannelKind> = {
  "ahp-root": "root",
  "ahp-chat": "chat",
  "ahp-terminal": "terminal",
  "ahp-changeset": "changeset",
  "ahp-canvas": "canvas",
};

/** The kind of channel that a URI most likely names. Hosts choose their own URIs, so callers that follow a channel pass its kind. */
export function kindOf(uri: string): ChannelKind {
  const scheme = uri.slice(0, uri.indexOf(":"));
  return SCHEMES[scheme] ?? (uri.endsWith("/annotations") ? "annotations" : "session");
}
