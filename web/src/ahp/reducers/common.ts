/** Shared by all reducers: the dispatch with its check, and functions that copy and edit. If nothing changes, they return the same object. */

import type { Action } from "../types.ts";

// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type Obj = Record<string, any>;
export type Handler = (state: Obj, action: Obj) => Obj;
export type Handlers = Record<string, Handler>;

export type Reducer = (state: Obj, action: Action) => Obj;

/** A reducer from a table. Unknown types and malformed data do not apply: the same state comes back. */
export function reducer(handlers: Handlers): Reducer {
  return (state, action) => {
    const handler = Object.hasOwn(handlers, action.type) ? handlers[action.type] : undefined;
    if (handler === undefined) return state;
    try {
      return handler(state, action);
    } catch {
      return state;
    }
  };
}

/** The handler of an action that only carries a message. */
export const unchanged: Handler = (state) => state;

/** Replaces `state[key]` with the action's field; a missing field removes it. */
export const assign =
  (key: string, field = key): Handler =>
  (state, action) =>
    put(state, key, action[field]);

/** `item` with `key` set; undefined or null removes it. */
export function put(item: Obj, key: string, value: unknown): Obj {
  return amend(item, { [key]: value });
}

/** `item` without `keys`. */
export function without(item: Obj, ...keys: string[]): Obj {
  if (!keys.some((key) => key in item)) return item;
  const after = { ...item };
  for (const key of keys) delete after[key];
  return after;
}

/** `item` with `changes` written over it; undefined and null remove. */
export function amend(item: Obj, changes: Obj): Obj {
  const after: Obj = { ...item, ...changes };
  for (const key of Object.keys(changes)) if (after[key] === undefined || after[key] === null) delete after[key];
  return after;
}

/** The index of the first entry with that key value, or -1. */
export const firstIndex = (items: readonly Obj[], key: string, value: unknown): number =>
  items.findIndex((item) => item?.[key] === value);

/** The index of the last entry with that key value, or -1. */
export function lastIndex(items: readonly Obj[], key: string, value: unknown): number {
  for (let index = items.length - 1; index >= 0; index -= 1) if (items[index]?.[key] === value) return index;
  return -1;
}

export function replaced(items: readonly Obj[], index: number, entry: Obj): Obj[] {
  const after = items.slice();
  after[index] = entry;
  return after;
}

/** `items` with `entry` in the place of the first one with the same key, or at the end. */
export function upserted(items: readonly Obj[] | undefined | null, entry: Obj, key: string): Obj[] {
  const list = items ?? [];
  const index = firstIndex(list, key, entry[key]);
  return index < 0 ? [...list, entry] : replaced(list, index, entry);
}

/** `items` without the first entry of that key value; the same array when there was none. */
export function removed<T extends Obj>(items: T[], key: string, value: unknown): T[] {
  const index = firstIndex(items, key, value);
  return index < 0 ? items : items.filter((_, at) => at !== index);
}

/** `items` without all entries of that key value; the same array when there was none. */
export function allRemoved<T extends Obj>(items: T[], key: string, value: unknown): T[] {
  const kept = items.filter((entry) => entry[key] !== value);
  return kept.length === items.length ? items : kept;
}

/** Handler of `*​/configChanged`: merge or replace `config.values`. */
export const mergeConfig: Handler = (state, action) => {
  if (!state.config) return state;
  const values = action.replace ? { ...action.config } : { ...state.config.values, ...action.config };
  return { ...state, config: { ...state.config, values } };
};

// The status with the bit set. Bits 0 to 4 are the activity, the rest are flags.
export const IDLE = 1;
export const ERROR = 2;
export const IN_PROGRESS = 8;
export const INPUT_NEEDED = 24;
export const IS_READ = 32;
export const IS_ARCHIVED = 64;
const ACTIVITY = 31;

export const withActivity = (status: number, activity: number): number => ((status & ~ACTIVITY) | activity) >>> 0;
export const withFlag = (status: number, flag: number, on: boolean): number =>
  (on ? status | flag : status & ~flag) >>> 0;

export const flagHandler =
  (flag: number, field: string): Handler =>
  (state, action) => {
    const status = withFlag(state.status, flag, action[field]);
    return status === state.status ? state : { ...state, status };
  };

/** `workingDirectorySet`: add the directory unless it is there. */
export const directorySet: Handler = (state, action) => {
  const list: string[] = state.workingDirectories ?? [];
  return list.includes(action.directory) ? state : { ...state, workingDirectories: [...list, action.directory] };
};

export const directoryRemoved: Handler = (state, action) => {
  const list: string[] = state.workingDirectories ?? [];
  const index = list.indexOf(action.directory);
  return index < 0 ? state : { ...state, workingDirectories: list.filter((_, at) => at !== index) };
};
