/** A changed file: its name, how much changed, and the diff if it is small or the person opens it. */

import type { ComponentType, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { FileEdit } from "../ahp/index.ts";
import { pathOf } from "../mirror/selectors.ts";
import type { LineComments } from "./diff.tsx";

const AUTO = 500;
const GENERATED = /(^|\/)(package-lock\.json|yarn\.lock|pnpm-lock\.yaml|uv\.lock|poetry\.lock|Cargo\.lock|go\.sum)$|\.min\.\w+$|\.(map|snap)$|(^|\/)(dist|build|vendor|node_modules)\//;

export const editPath = (edit: FileEdit): string => pathOf(edit.after?.uri ?? edit.before?.uri ?? "");

/** A path inside one of the session's directories is shown relative to it. */
export function fromRoot(path: string, roots: readonly string[] = []): string {
  const within = roots.map(pathOf).map((root) => (root.endsWith("/") ? root : `${root}/`)).filter((root) => path.startsWith(root));
  return path.slice(Math.max(0, ...within.map((root) => root.length)));
}

/** The name comes first, because it matters most; then as much of the folder as there is room for. */
export function FileName({ path, roots }: { path: string; roots?: readonly string[] | undefined }): JSX.Element {
  const shown = fromRoot(path, roots);
  const folder = shown.slice(0, Math.max(0, shown.lastIndexOf("/")));
  return <span class="file-name mono" title={path}><span class="cut">{shown.slice(shown.lastIndexOf("/") + 1)}</span>{folder && <span class="cut-start muted"><bdi>{folder}</bdi></span>}</span>;
}

export function editWord(edit: FileEdit): string {
  if (!edit.before) return "Created";
  if (!edit.after) return "Deleted";
  return edit.before.uri === edit.after.uri ? "Changed" : "Renamed";
}

export const opensByItself = (edit: FileEdit): boolean => {
  const lines = (edit.diff?.added ?? 0) + (edit.diff?.removed ?? 0);
  return edit.diff !== undefined && lines <= AUTO && !GENERATED.test(editPath(edit));
};

type DiffView = ComponentType<{ edit: FileEdit; comments?: LineComments }>;
let loaded: DiffView | undefined;

/** The code for diffs is loaded when the first diff is opened. */
export function LazyDiff(props: { edit: FileEdit; comments?: LineComments }): JSX.Element {
  const [View, set] = useState<DiffView | undefined>(() => loaded);
  useEffect(() => {
    if (View) return;
    void import("./diff.tsx").then((module) => {
      loaded = module.default;
      set(() => module.default);
    });
  }, []);
  return View ? <View {...props} /> : <p class="comment small muted">Loading the diff…</p>;
}

export function Counts({ added, removed }: { added?: number | undefined; removed?: number | undefined }): JSX.Element | null {
  if (!added && !removed) return null;
  return (
    <span class="changes-count">
      <span class="plus">+{added ?? 0}</span> <span class="minus">−{removed ?? 0}</span>
    </span>
  );
}

export function EditView({ edit, roots }: { edit: FileEdit; roots: readonly string[] | undefined }): JSX.Element {
  const [shown, set] = useState(opensByItself(edit));
  return (
    <details class="file" open={shown} onToggle={(event) => set(event.currentTarget.open)}>
      <summary>
        <span class="muted">{editWord(edit)}</span>
        <FileName path={editPath(edit)} roots={roots} />
        <Counts added={edit.diff?.added} removed={edit.diff?.removed} />
        {!shown && <span class="muted small">Load diff</span>}
      </summary>
      {shown && <LazyDiff edit={edit} />}
    </details>
  );
}
