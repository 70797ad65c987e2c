/** The small reducers: root, terminal, changeset, annotations, canvas. */

import {
  amend, assign, type Handler, firstIndex, mergeConfig, type Obj, put, reducer, removed, replaced, unchanged, upserted,
} from "./common.ts";

export const rootReducer = reducer({
  "root/agentsChanged": assign("agents"),
  "root/activeSessionsChanged": assign("activeSessions"),
  "root/terminalsChanged": assign("terminals"),
  "root/configChanged": mergeConfig,
});

// Terminals: output belongs to the running command. If none runs, it belongs to the unclassified part at the end, or to a new such part.

const terminalData: Handler = (state, action) => {
  const last: Obj | undefined = state.content.at(-1);
  const end = state.content.length - 1;
  if (last?.type === "command" && !last.isComplete)
    return { ...state, content: replaced(state.content, end, { ...last, output: last.output + action.data }) };
  if (last?.type === "unclassified")
    return { ...state, content: replaced(state.content, end, { ...last, value: last.value + action.data }) };
  return { ...state, content: [...state.content, { type: "unclassified", value: action.data }] };
};

const commandExecuted: Handler = (state, action) => ({
  ...state,
  supportsCommandDetection: true,
  content: [
    ...state.content,
    {
      type: "command",
      commandId: action.commandId,
      commandLine: action.commandLine,
      output: "",
      timestamp: action.timestamp,
      isComplete: false,
    },
  ],
});

const commandFinished: Handler = (state, action) => {
  const ended = { isComplete: true, exitCode: action.exitCode, durationMs: action.durationMs };
  const isIt = (part: Obj): boolean => part.type === "command" && part.commandId === action.commandId;
  const content: Obj[] = state.content;
  return content.some(isIt)
    ? { ...state, content: content.map((part) => (isIt(part) ? amend(part, ended) : part)) }
    : state;
};

export const terminalReducer = reducer({
  "terminal/data": terminalData,
  "terminal/input": unchanged,
  "terminal/resized": (state, action) => ({ ...state, cols: action.cols, rows: action.rows }),
  "terminal/claimed": assign("claim"),
  "terminal/titleChanged": assign("title"),
  "terminal/cwdChanged": assign("cwd"),
  "terminal/exited": (state, action) => ({
    ...state,
    lifecycle: put({ status: "exited" }, "exitCode", action.exitCode),
  }),
  "terminal/cleared": (state) => (state.content.length ? { ...state, content: [] } : state),
  "terminal/commandDetectionAvailable": (state) => ({ ...state, supportsCommandDetection: true }),
  "terminal/commandExecuted": commandExecuted,
  "terminal/commandFinished": commandFinished,
});

// Changesets: a status and its error go together.

const statusOf = (item: Obj, action: Obj): Obj =>
  amend(item, { status: action.status, error: action.status === "error" ? action.error : null });

const operationStatusChanged: Handler = (state, action) => {
  const operations: Obj[] = state.operations ?? [];
  const index = firstIndex(operations, "id", action.operationId);
  if (index < 0) return state;
  return { ...state, operations: replaced(operations, index, statusOf(operations[index] as Obj, action)) };
};

const reviewChanged: Handler = (state, action) => {
  const ids = new Set<string>(action.files);
  const files: Obj[] = state.files;
  const after = files.map((file) =>
    ids.has(file.id) && file.reviewed !== action.reviewed ? { ...file, reviewed: action.reviewed } : file,
  );
  return after.every((file, index) => file === files[index]) ? state : { ...state, files: after };
};

const fileRemoved: Handler = (state, action) => {
  const files = removed(state.files as Obj[], "id", action.fileId);
  return files === state.files ? state : { ...state, files };
};

export const changesetReducer = reducer({
  "changeset/statusChanged": statusOf,
  "changeset/fileSet": (state, action) => ({ ...state, files: upserted(state.files, action.file, "id") }),
  "changeset/fileRemoved": fileRemoved,
  "changeset/filesReviewChanged": reviewChanged,
  "changeset/contentChanged": (state, action) =>
    action.operations == null
      ? { ...state, files: action.files }
      : { ...state, files: action.files, operations: action.operations },
  "changeset/operationsChanged": assign("operations"),
  "changeset/operationStatusChanged": operationStatusChanged,
  "changeset/cleared": (state) => (state.files.length ? { ...state, files: [] } : state),
});

// Annotations

const within =
  (change: Handler): Handler =>
  (state, action) => {
    const index = firstIndex(state.annotations, "id", action.annotationId);
    if (index < 0) return state;
    const after = change(state.annotations[index], action);
    return after === state.annotations[index]
      ? state
      : { ...state, annotations: replaced(state.annotations, index, after) };
  };

const UPDATABLE = ["origin", "resource", "range", "resolved"];

const annotationUpdated: Handler = (annotation, action) => {
  const keys = UPDATABLE.filter((key) => action[key] !== undefined && action[key] !== null);
  return keys.length ? { ...annotation, ...Object.fromEntries(keys.map((key) => [key, action[key]])) } : annotation;
};

const entryRemoved: Handler = (annotation, action) => {
  const entries = removed(annotation.entries as Obj[], "id", action.entryId);
  return entries === annotation.entries ? annotation : { ...annotation, entries };
};

export const annotationsReducer = reducer({
  "annotations/set": (state, action) => ({
    ...state,
    annotations: upserted(state.annotations, action.annotation, "id"),
  }),
  "annotations/updated": within(annotationUpdated),
  "annotations/removed": (state, action) => {
    const annotations = removed(state.annotations as Obj[], "id", action.annotationId);
    return annotations === state.annotations ? state : { ...state, annotations };
  },
  "annotations/entrySet": within((annotation, action) => ({
    ...annotation,
    entries: upserted(annotation.entries, action.entry, "id"),
  })),
  "annotations/entryRemoved": within(entryRemoved),
});

/** A canvas channel is replaced as a whole. */
export const canvasReducer = reducer({
  "canvas/stateChanged": (state, action) => (action.canvas ? action.canvas : state),
});
