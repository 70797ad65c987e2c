/** A tool call in every state of its life: input as it streams, approval, progress, result, files, helpers. */

import type { ComponentType, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { SessionState, ToolCall, ToolContent, Uri } from "../ahp/index.ts";
import { failed, helpersOf, inShort, isOpen, plain, type Helper as HelperChat, waitsForPerson } from "../mirror/selectors.ts";
import { Lengthy, Mark } from "../ui/bits.tsx";
import { EditView } from "./edit.tsx";
import { size } from "./markdown.tsx";
import { Output } from "./output.tsx";
import { Referred } from "./referred.tsx";

/** What a call needs from the chat around it; the chat's own views, handed down so that parts import no views. */
export interface Around {
  session: SessionState | undefined;
  sessionUri: Uri;
  chat: Uri;
  turnId: string;
  depth: number;
  Payload: ComponentType<{ call: ToolCall }>;
  Approval: ComponentType<{ request: { id: string; chat: Uri; kind: "toolConfirmation"; turnId: string; toolCall: ToolCall }; session: SessionState | undefined }>;
  Helper: ComponentType<{ uri: Uri; around: Around }>;
}

function stateOf(call: ToolCall): "needs" | "failed" | "running" | "done" {
  if (waitsForPerson(call) || call.status === "auth-required") return "needs";
  if (isOpen(call)) return "running";
  return failed(call) ? "failed" : "done";
}

const REASONS: Record<string, string> = { denied: "Denied", skipped: "Not run", "result-denied": "Result discarded" };

/** What a call does or did, in a line. */
export const oneLine = (call: ToolCall): string => inShort(described(call));

function described(call: ToolCall): string {
  const name = call.displayName || call.toolName;
  if (call.status === "streaming") return plain(call.invocationMessage) || `Preparing ${name}`;
  if (call.status === "completed") return plain(call.pastTenseMessage) || name;
  if (call.status === "cancelled") return `${REASONS[call.reason ?? ""] ?? "Cancelled"}: ${plain(call.invocationMessage) || name}`;
  return plain(call.invocationMessage) || name;
}

type TerminalComponent = ComponentType<{ uri: Uri }>;

function TerminalContent({ content, live }: { content: Extract<ToolContent, { type: "terminal" }>; live: boolean }): JSX.Element {
  const [View, set] = useState<TerminalComponent | undefined>(undefined);
  const open = (): void => void import("./terminal.tsx").then((module) => set(() => module.default));
  useEffect(() => {
    if (live) open();
  }, []);
  const result = content.result;
  return (
    <div class="stack" style={{ gap: "4px" }}>
      <div class="row small"><span class="mono cut grow" title={content.title}>{content.title}</span>
        {result?.exitCode !== undefined && <span class={result.exitCode ? "danger" : "muted"}>exit {result.exitCode}</span>}
        {!View && <button type="button" class="btn quiet" onClick={open}>Open terminal</button>}
      </div>
      {View ? <View uri={content.resource} /> : result?.preview !== undefined && <Output text={result.preview} />}
      {!View && result?.truncated && <p class="small muted">Only a part is shown. The terminal has all of it.</p>}
    </div>
  );
}

function Content({ content, live, fromEnd }: { content: ToolContent; live: boolean; fromEnd: boolean }): JSX.Element | null {
  switch (content.type) {
    case "text":
      return <Output text={String(content.text ?? "")} live={live} fromEnd={fromEnd} />;
    case "terminal":
      return <TerminalContent content={content} live={live} />;
    case "resource":
      return <Referred content={content} />;
    case "fileEdit":
    case "subagent":
      return null; // See `Shown`.
    case "embeddedResource":
      return /^image\/(png|jpeg|gif|webp|avif)$/.test(content.contentType)
        ? <img alt="Result" src={`data:${content.contentType};base64,${content.data}`} style={{ maxWidth: "100%" }} />
        : <p class="small muted">{content.contentType}, {size(Math.round(String(content.data).length * 0.75))}</p>;
    default:
      return <p class="small muted">Content of a kind this page does not know.</p>;
  }
}

const capital = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1);

function SubAgent({ helper, live, around }: { helper: HelperChat; live: boolean; around: Around }): JSX.Element {
  const [open, set] = useState(live);
  const Helper = around.Helper;
  return (
    <details class="fold helper" open={open} onToggle={(event) => set(event.currentTarget.open)}>
      <summary><span class="name grow cut" title={helper.title}>{[...new Set([capital(helper.agentName ?? "helper"), helper.title])].join(": ")}</span></summary>
      {open && <div class="nested"><Helper uri={helper.resource} around={{ ...around, chat: helper.resource, depth: around.depth + 1 }} /></div>}
    </details>
  );
}

/** The part of a call that is always visible: the files it changed, and what its helpers do. */
export function Shown({ call, around }: { call: ToolCall; around: Around }): JSX.Element {
  const helpers = around.depth < 4 ? helpersOf(call, around.chat, around.session) : [];
  return (
    <>
      {call.content?.map((content, index) => content.type === "fileEdit" && <EditView key={index} edit={content} roots={around.session?.workingDirectories} />)}
      {helpers.map((helper) => <SubAgent key={helper.resource} helper={helper} live={isOpen(call)} around={around} />)}
    </>
  );
}

export const showsMore = (call: ToolCall, around: Around): boolean =>
  call.content?.some((content) => content.type === "fileEdit") === true || helpersOf(call, around.chat, around.session).length > 0;

/** The rest of a call: its input, what it printed, and how it was decided. */
function Body({ call, around }: { call: ToolCall; around: Around }): JSX.Element {
  const Payload = around.Payload;
  return (
    <>
      {helpersOf(call, around.chat, around.session).length && isOpen(call)
        ? <details class="fold"><summary>Input of the call</summary><div class="folded"><Payload call={call} /></div></details>
        : <Payload call={call} />}
      {isOpen(call) && call.edits?.items.map((edit, index) => <EditView key={index} edit={edit} roots={around.session?.workingDirectories} />)}
      {call.content?.map((content, index) => <Content key={index} content={content} live={call.status === "running"} fromEnd={isOpen(call) || failed(call)} />)}
      {call.error && call.error.message !== "failed" && <p class="note danger break"><Lengthy text={call.error.message} /></p>}
      {call.reasonMessage && <p class="small break">{plain(call.reasonMessage)}</p>}
      {call.userSuggestion && <p class="small break">“{call.userSuggestion.text}”</p>}
      {call.confirmed === "setting" && <p class="small muted">Allowed by a rule{call.selectedOption ? `: ${call.selectedOption.label}` : ""}.</p>}
      {call.confirmed === "user-action" && call.selectedOption && <p class="small muted">Answered: {call.selectedOption.label}</p>}
    </>
  );
}

export function ToolCallView({ call, around }: { call: ToolCall; around: Around }): JSX.Element {
  const state = stateOf(call);
  const Approval = around.Approval;
  if (waitsForPerson(call))
    return <Approval request={{ id: call.toolCallId, chat: around.chat, kind: "toolConfirmation", turnId: around.turnId, toolCall: call }} session={around.session} />;
  if (isOpen(call) || failed(call))
    return (
      <div class={`tool open ${state === "needs" ? "waiting" : ""}`}>
        <div class="row small"><Mark of={state} /><span class="name break grow">{oneLine(call)}</span>
          {call.status === "auth-required" && <span class="chip needs">Needs a sign-in</span>}
        </div>
        <Body call={call} around={around} />
        <Shown call={call} around={around} />
      </div>
    );
  return <Finished call={call} around={around} />;
}

export function Finished({ call, around }: { call: ToolCall; around: Around }): JSX.Element {
  const [open, set] = useState(false);
  return (
    <>
      <details class="fold tool" open={open} onToggle={(event) => set(event.currentTarget.open)}>
        <summary><Mark of={call.status === "cancelled" ? "failed" : "done"} /><span class="name grow cut" title={oneLine(call)}>{oneLine(call)}</span></summary>
        {open && <div class="folded"><Body call={call} around={around} /></div>}
      </details>
      <Shown call={call} around={around} />
    </>
  );
}
