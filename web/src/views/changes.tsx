/** Changed files: of the session, of a chat, of a turn. Diffs, review marks, comments, and what the host can do with them. */

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { type AnnotationsState, type Changeset, type ChangesetFile, type ChangesetOperation, type ChangesetState } from "../ahp/index.ts";
import { mayWrite } from "../local/me.ts";
import { splitDiff } from "../local/settings.ts";
import { nameOf, plain, toChoose } from "../mirror/selectors.ts";
import { request, useChannel } from "../mirror/store.ts";
import type { LineComments } from "../parts/diff.tsx";
import { Counts, editPath, editWord, FileName, LazyDiff, opensByItself } from "../parts/edit.tsx";
import { act, confirmed, Dialog, Icon, Menu, tellRefused, toast } from "../ui/bits.tsx";
import { annotationsOf, comment, reviewCount } from "./review.ts";
import type { PanelProps } from "./session.tsx";

/** The channel of a changeset: its template filled with this turn; undefined if the template has other variables. */
export function expand(changeset: Changeset, turnId: string | undefined): string | undefined {
  const uri = turnId ? changeset.uriTemplate.replace("{turnId}", encodeURIComponent(turnId)) : changeset.uriTemplate;
  return /\{.*\}/.test(uri) ? undefined : uri;
}

function Operations({ uri, operations, file }: { uri: string; operations: ChangesetOperation[]; file?: ChangesetFile }): JSX.Element | null {
  const scope = file ? "resource" : "changeset";
  const fitting = operations.filter((operation) => operation.scopes.includes(scope));
  const [committing, commit] = useState<ChangesetOperation | undefined>(undefined);
  if (!fitting.length || !mayWrite()) return null;
  const run = async (operation: ChangesetOperation, message?: string): Promise<void> => {
    if (operation.id === "commit" && message === undefined) return commit(operation);
    if (operation.confirmation !== undefined && !(await confirmed(plain(operation.confirmation) || `${operation.label}?`, operation.label))) return;
    const target = file ? { target: { kind: "resource", resource: file.edit.after?.uri ?? file.edit.before?.uri } } : {};
    try {
      const answer = await request<{ message?: string }>("invokeChangesetOperation", { channel: uri, operationId: operation.id, ...target, ...(message ? { _meta: { "ahpkit/message": message } } : {}) });
      toast(plain(answer?.message) || `${operation.label}: done`);
    } catch (error) {
      tellRefused((error as Error).message);
    }
  };
  if (file)
    return <Menu label={`What to do with ${editPath(file.edit)}`} entries={fitting.map((operation) => ({ label: operation.label, ...(operation.description ? { sub: operation.description } : {}), disabled: operation.status === "running" || operation.status === "disabled", run: () => void run(operation) }))} />;
  return (
    <div class="row wrap">
      {fitting.map((operation) => (
        <button key={operation.id} type="button" class={`btn${operation.confirmation !== undefined ? " bad" : ""}`} title={operation.description} disabled={operation.status === "running" || operation.status === "disabled"} onClick={() => void run(operation)}>
          {operation.status === "running" ? `${operation.label}…` : operation.label}
        </button>
      ))}
      {committing && <Ask label="Commit" field="Message of the commit" hint="Without one, the session's title" onClose={() => commit(undefined)} onSave={(text) => void run(committing, text || " ")} />}
      {fitting.filter((operation) => operation.error).map((operation) => <p key={operation.id} class="small danger break">{operation.label}: {operation.error?.message}</p>)}
    </div>
  );
}

function File({ uri, file, operations, review, comments, roots }: { uri: string; file: ChangesetFile; operations: ChangesetOperation[]; review: boolean; comments: LineComments; roots: readonly string[] | undefined }): JSX.Element {
  const [open, set] = useState(opensByItself(file.edit) && !file.reviewed);
  const path = editPath(file.edit);
  const unkept = file._meta?.["ahpkit/note"];
  return (
    <section class="file" aria-label={path}>
      <div class="file-head">
        <button type="button" class="btn quiet grow" aria-expanded={open} style={{ justifyContent: "flex-start", minWidth: 0 }} onClick={() => set(!open)}>
          <Icon name={open ? "down" : "right"} /><FileName path={path} roots={roots} />
        </button>
        {editWord(file.edit) !== "Changed" && <span class="chip">{editWord(file.edit)}</span>}
        {typeof unkept === "string" && <span class="chip">{unkept}</span>}
        <Counts added={file.edit.diff?.added} removed={file.edit.diff?.removed} />
        {review && (
          <label class="check small">
            <input type="checkbox" aria-label={`Reviewed: ${path}`} disabled={!mayWrite()} checked={file.reviewed === true} onChange={(event) => {
              const reviewed = event.currentTarget.checked;
              if (reviewed) set(false);
              void act(uri, { type: "changeset/filesReviewChanged", files: [file.id], reviewed }, "changeset");
            }} />Reviewed
          </label>
        )}
        <Operations uri={uri} operations={operations} file={file} />
      </div>
      {unkept === undefined && !open && !opensByItself(file.edit) && !file.reviewed && <button type="button" class="btn quiet" onClick={() => set(true)}>Load diff</button>}
      {unkept === undefined && open && <LazyDiff edit={file.edit} comments={comments} />}
    </section>
  );
}

const NONE: Record<string, string> = {
  uncommitted: "Nothing differs from the last commit.", session: "This session has changed no files yet.", turn: "This turn changed no files.",
};

function ChangesetView({ uri, changeset, props }: { uri: string; changeset: Changeset; props: PanelProps }): JSX.Element {
  const seen = useChannel<ChangesetState>(uri, "changeset").value;
  const annotations = useChannel<AnnotationsState>(annotationsOf(props.uri, props.session), "annotations").value.state;
  const [line, setLine] = useState<{ resource: string; line: number } | undefined>(undefined);
  const state = seen.state;
  if (seen.error) return <p class="note danger break">{seen.error.message}</p>;
  if (!state || state.status === "computing") return <p class="muted">Comparing…</p>;
  if (state.status === "error") return <p class="note danger break">{state.error?.message}</p>;
  const operations = state.operations ?? [];
  const review = changeset.capabilities?.review !== undefined;
  const reviewed = state.files.filter((file) => file.reviewed).length;
  const on = (resource: string): LineComments => ({
    at: (at) => (annotations?.annotations ?? []).filter((each) => each.resource === resource && each.range?.start.line === at - 1 && !each.resolved).flatMap((each) => each.entries.map((entry) => plain(entry.text))),
    ...(mayWrite() ? { add: (at: number) => setLine({ resource, line: at }) } : {}),
  });
  return (
    <>
      {state.files.length > 0 && <div class="row wrap small muted">
        <span class="grow">{state.files.length} {state.files.length === 1 ? "file" : "files"}{review ? `, ${reviewed} reviewed` : ""}{state.status === "recomputing" ? " · comparing again…" : ""}</span>
        <button type="button" class="btn quiet wide-only" aria-pressed={splitDiff.value} onClick={() => (splitDiff.value = !splitDiff.value)}>Side by side</button>
      </div>}
      <Operations uri={uri} operations={state.files.length ? operations : operations.filter((each) => each.status !== "disabled")} />
      {state.files.map((file) => <File key={file.id} uri={uri} file={file} operations={operations} review={review} roots={[...(props.chat?.workingDirectories ?? []), ...(props.session.workingDirectories ?? [])]} comments={on(file.edit.after?.uri ?? file.edit.before?.uri ?? "")} />)}
      {!state.files.length && <p class="empty">{NONE[changeset.changeKind] ?? "No changes."}</p>}
      {line && <Ask label="Add comment" field={`Comment on line ${line.line} of ${nameOf(line.resource)}. It goes out with your next message.`} onClose={() => setLine(undefined)} onSave={(text) => void comment(props.uri, props.session, props.chat?.resource, line.resource, line.line, text)} />}
    </>
  );
}

/** A dialog that asks for one text. With a `hint` the text may stay empty. */
function Ask({ label, field, hint, onClose, onSave }: { label: string; field: string; hint?: string; onClose(): void; onSave(text: string): void }): JSX.Element {
  const [text, set] = useState("");
  return (
    <Dialog label={label} onClose={onClose}>
      <form onSubmit={(event) => {
        event.preventDefault();
        onSave(text.trim());
        onClose();
      }}>
        <label class="field"><span>{field}</span><textarea rows={3} autofocus placeholder={hint} value={text} onInput={(event) => set(event.currentTarget.value)} /></label>
        <div class="row"><button type="submit" class="btn primary" disabled={!text.trim() && hint === undefined}>{label}</button><button type="button" class="btn" onClick={onClose}>Cancel</button></div>
      </form>
    </Dialog>
  );
}

export default function Changes(props: PanelProps): JSX.Element {
  const { session, chat } = props;
  const catalogue = [...(chat?.changesets ?? []), ...(session.changesets ?? [])];
  const [chosen, choose] = useState(0);
  const [turn, setTurn] = useState<string | undefined>(undefined);
  const asked = props.at.turn;
  const turns = toChoose(chat?.turns, asked);
  useEffect(() => {
    const index = catalogue.findIndex((each) => each.uriTemplate.includes("{turnId}"));
    if (asked === undefined || index < 0) return;
    choose(index);
    setTurn(asked);
  }, [asked, catalogue.length]);
  const changeset = catalogue[Math.min(chosen, catalogue.length - 1)];
  const perTurn = changeset?.uriTemplate.includes("{turnId}") ?? false;
  const uri = changeset && expand(changeset, perTurn ? (turn ?? turns[0]?.id) : undefined);
  const comments = reviewCount(props.uri);
  return (
    <div class="pane-body" tabIndex={0} role="region" aria-label="Changed files">
      <div class="side-body">
        {catalogue.length > 0 && (
          <div class="row wrap">
            <select aria-label="Which changes" value={String(chosen)} onChange={(event) => choose(event.currentTarget.selectedIndex)}>
              {catalogue.map((each, index) => <option key={each.uriTemplate} value={String(index)}>{each.label}</option>)}
            </select>
            {perTurn && (
              <select aria-label="Which turn" value={turn ?? turns[0]?.id ?? ""} onChange={(event) => setTurn(event.currentTarget.value)}>
                {turns.map((each) => <option key={each.id} value={each.id}>{each.message.text.slice(0, 60) || "Turn"}</option>)}
              </select>
            )}
          </div>
        )}
        {comments > 0 && <p class="note needs">{comments} {comments === 1 ? "comment waits" : "comments wait"}. They go out with your next message.</p>}
        {changeset && uri ? <ChangesetView key={uri} uri={uri} changeset={changeset} props={props} />
          : catalogue.length ? <p class="empty">There is no finished turn yet.</p>
          : <p class="empty">This agent or host does not keep track of changed files here. File edits are shown at the tool calls that made them.</p>}
      </div>
    </div>
  );
}
