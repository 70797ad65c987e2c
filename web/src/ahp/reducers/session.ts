/** The session channel's reducer: life cycle, chats, clients, customizations, what waits for a person, canvases. */

import {
  allRemoved, amend, assign, directoryRemoved, directorySet, firstIndex, flagHandler, type Handler, INPUT_NEEDED,
  IS_ARCHIVED, IS_READ, mergeConfig, type Obj, put, reducer, removed, replaced, unchanged, upserted, withActivity, without,
} from "./common.ts";

// Chats

const chatRemoved: Handler = (state, action) => {
  const chats = removed(state.chats as Obj[], "resource", action.chat);
  if (chats === state.chats) return state;
  const after = { ...state, chats };
  return state.defaultChat === action.chat ? without(after, "defaultChat") : after;
};

const chatUpdated: Handler = (state, action) => {
  const index = firstIndex(state.chats, "resource", action.chat);
  const changes = without(action.changes, "resource");
  if (index < 0 || !Object.keys(changes).length) return state;
  return { ...state, chats: replaced(state.chats, index, amend(state.chats[index], changes)) };
};

/** The action applies only if it names every chat exactly once. */
const chatsReordered: Handler = (state, action) => {
  const order: string[] = action.chats;
  const chats = order.map((uri) => state.chats.find((chat: Obj) => chat.resource === uri));
  const complete = new Set(order).size === state.chats.length && order.length === state.chats.length;
  return complete && !chats.includes(undefined) ? { ...state, chats } : state;
};

// Working directories: a replacement that occurs several times is kept at its first place.

const directoryReplaced: Handler = (state, action) => {
  const list: string[] = state.workingDirectories ?? [];
  const index = list.indexOf(action.directory);
  if (index < 0 || action.directory === action.replacement) return state;
  const [before, after] = [list.slice(0, index), list.slice(index + 1)];
  const next = before.includes(action.replacement)
    ? [...before, ...after]
    : [...before, action.replacement, ...after.filter((each) => each !== action.replacement)];
  return { ...state, workingDirectories: next };
};

// What waits for a person

const asksAPerson = (request: Obj): boolean => request.kind !== "toolClientExecution";

function withNeeds(state: Obj, requests: Obj[]): Obj {
  const after = put(state, "inputNeeded", requests.length ? requests : null);
  const status = requests.some(asksAPerson) ? withActivity(state.status, INPUT_NEEDED) : (state.status & ~16) >>> 0;
  return { ...after, status };
}

const inputNeededRemoved: Handler = (state, action) => {
  const requests: Obj[] = state.inputNeeded ?? [];
  const kept = removed(requests, "id", action.id);
  return kept === requests ? state : withNeeds(state, kept);
};

// Customizations: every target is found by its id, at the top or in a container.

function edited(state: Obj, id: unknown, change: (entry: Obj) => Obj | undefined): Obj {
  const edit = (entries: Obj[]): Obj[] => {
    const index = entries.findIndex((entry) => entry.id === id);
    const entry = entries[index];
    if (entry) {
      const after = change(entry);
      if (after === entry) return entries;
      return after ? replaced(entries, index, after) : entries.filter((each) => each !== entry);
    }
    for (const [at, container] of entries.entries()) {
      if (!container.children) continue;
      const children = edit(container.children);
      if (children !== container.children) return replaced(entries, at, { ...container, children });
    }
    return entries;
  };
  const entries: Obj[] = state.customizations ?? [];
  const after = edit(entries);
  return after === entries ? state : { ...state, customizations: after };
}

const toggled: Handler = (state, action) => {
  const decisions: Obj[] = action.enablement;
  if (!Array.isArray(decisions)) return state;
  return edited(state, action.id, (entry) =>
    entry.type === "plugin" || entry.type === "mcpServer"
      ? put(entry, "enablement", decisions.length ? decisions : null)
      : { ...entry, enabled: decisions[0]?.enabled ?? true },
  );
};

const onServer = (state: Obj, id: unknown, change: (server: Obj) => Obj): Obj =>
  edited(state, id, (entry) => (entry.type === "mcpServer" ? change(entry) : entry));

const serverStateChanged: Handler = (state, action) =>
  onServer(state, action.id, (server) => put({ ...server, state: action.state }, "channel", action.channel));

const serverRequested =
  (kind: string): Handler =>
  (state, action) =>
    onServer(state, action.id, (server) => without({ ...server, state: { kind } }, "channel"));

const serverBackground: Handler = (state, action) =>
  onServer(state, action.id, (server) =>
    server.state.kind === "starting" && server.state.blocking
      ? { ...server, state: { ...server.state, blocking: false } }
      : server,
  );

// Canvases: what ahpkit adds to sessions.

const PATCHABLE = ["title", "status", "url", "availability"];

const dropped = (state: Obj, list: string, key: string, value: unknown): Obj => {
  const entries: Obj[] = state[list] ?? [];
  const kept = allRemoved(entries, key, value);
  return kept === entries ? state : { ...state, [list]: kept };
};

const canvasUpdated: Handler = (state, action) => {
  const instances: Obj[] = state.openCanvases ?? [];
  const index = firstIndex(instances, "instanceId", action.instanceId);
  const keys = PATCHABLE.filter((key) => key in action.changes);
  if (index < 0 || !keys.length) return state;
  const changes = Object.fromEntries(keys.map((key) => [key, action.changes[key]]));
  return { ...state, openCanvases: replaced(instances, index, amend(instances[index] as Obj, changes)) };
};

const requestEnded: Handler = (state, action) => dropped(state, "canvasRequests", "requestId", action.requestId);

export const sessionReducer = reducer({
  "session/ready": (state) => ({ ...state, lifecycle: "ready" }),
  "session/creationFailed": (state, action) => ({ ...state, lifecycle: "failed", creationError: action.error }),
  "session/titleChanged": assign("title"),
  "session/activityChanged": assign("activity"),
  "session/isReadChanged": flagHandler(IS_READ, "isRead"),
  "session/isArchivedChanged": flagHandler(IS_ARCHIVED, "isArchived"),
  "session/changesetsChanged": assign("changesets"),
  "session/serverToolsChanged": assign("serverTools", "tools"),
  "session/configChanged": mergeConfig,
  "session/metaChanged": assign("_meta"),
  "session/chatAdded": (state, action) => ({ ...state, chats: upserted(state.chats, action.summary, "resource") }),
  "session/chatRemoved": chatRemoved,
  "session/chatUpdated": chatUpdated,
  "session/chatsReordered": chatsReordered,
  "session/defaultChatChanged": assign("defaultChat"),
  "session/activeClientSet": (state, action) => ({
    ...state,
    activeClients: upserted(state.activeClients, action.activeClient, "clientId"),
  }),
  "session/activeClientRemoved": (state, action) => ({
    ...state,
    activeClients: removed(state.activeClients as Obj[], "clientId", action.clientId),
  }),
  "session/workingDirectorySet": directorySet,
  "session/workingDirectoryRemoved": directoryRemoved,
  "session/workingDirectoryReplaced": directoryReplaced,
  "session/inputNeededSet": (state, action) => withNeeds(state, upserted(state.inputNeeded, action.request, "id")),
  "session/inputNeededRemoved": inputNeededRemoved,
  "session/customizationsChanged": assign("customizations"),
  "session/customizationUpdated": (state, action) => ({
    ...state,
    customizations: upserted(state.customizations, action.customization, "id"),
  }),
  "session/customizationToggled": toggled,
  "session/customizationRemoved": (state, action) => edited(state, action.id, () => undefined),
  "session/mcpServerStateChanged": serverStateChanged,
  "session/mcpServerStartRequested": serverRequested("starting"),
  "session/mcpServerStopRequested": serverRequested("stopped"),
  "session/mcpServerBackgroundRequested": serverBackground,
  "session/canvasRegistryChanged": assign("canvasRegistry", "canvases"),
  "session/canvasInstanceOpened": (state, action) => ({
    ...state,
    openCanvases: upserted(state.openCanvases, action.instance, "instanceId"),
  }),
  "session/canvasInstanceUpdated": canvasUpdated,
  "session/canvasInstanceClosed": (state, action) =>
    dropped(
      dropped(state, "openCanvases", "instanceId", action.instanceId),
      "canvasRequests",
      "instanceId",
      action.instanceId,
    ),
  "session/canvasInstanceCloseRequested": unchanged,
  "session/canvasRequestCreated": (state, action) => ({
    ...state,
    canvasRequests: upserted(state.canvasRequests, action.request, "requestId"),
  }),
  "session/canvasRequestCompleted": requestEnded,
  "session/canvasRequestCancelled": requestEnded,
});
