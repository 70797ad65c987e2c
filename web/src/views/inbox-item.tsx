/** One request in the inbox, which can be answered there. This code is loaded when something waits. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { ChatState, InputNeeded, SessionState } from "../ahp/index.ts";
import { mayAnswer, mayWrite } from "../local/me.ts";
import type { InboxItem } from "../mirror/inbox.ts";
import { age } from "../mirror/selectors.ts";
import { useChannel } from "../mirror/store.ts";
import { Markdown } from "../parts/markdown.tsx";
import { act, Mark } from "../ui/bits.tsx";
import { ApprovalCard, serverOf } from "./approvals.tsx";
import { QuestionForm } from "./questions.tsx";
import { markRead } from "./sessions.tsx";
import { SignIn } from "./signin.tsx";

function Failure({ item }: { item: InboxItem }): JSX.Element {
  const chatUri = item.summary?.defaultChat ?? item.summary?.chats?.[0]?.resource;
  const chat = useChannel<ChatState>(chatUri, "chat").value.state;
  const turn = chat?.turns.at(-1);
  const part = turn?.responseParts.at(-1);
  const resumable = part?.kind === "error" && part.resumable;
  return (
    <div class="card stack">
      <p class="danger break">{part?.kind === "error" ? part.error.message : "The last turn failed."}</p>
      <div class="row wrap">
        {resumable && turn && chatUri && mayWrite() && (
          <button type="button" class="btn primary" onClick={() => void act(chatUri, { type: "chat/turnResume", turnId: turn.id }, "chat")}>Go on</button>
        )}
        <a class="btn" href={item.url}>Open</a>
        {mayAnswer() && <button type="button" class="btn quiet" onClick={() => void markRead(item.session, true)}>Dismiss</button>}
      </div>
    </div>
  );
}

/** How many questions of a form are shown while other requests wait as well. */
const QUESTIONS = 3;

/** A long form would hide what waits below it: it opens when somebody wants to answer it. */
function Question({ request, alone }: { request: Extract<InputNeeded, { kind: "chatInput" }>; alone: boolean }): JSX.Element {
  const [open, set] = useState(false);
  const count = request.request.questions?.length ?? 0;
  if (open || alone || count <= QUESTIONS) return <QuestionForm chat={request.chat} request={request.request} response={undefined} expired={false} />;
  return (
    <div class="card needs stack">
      {request.request.message && <Markdown content={request.request.message} />}
      <div><button type="button" class="btn primary" onClick={() => set(true)}>{mayAnswer() ? "Answer" : "Show"} {count} questions</button></div>
    </div>
  );
}

export default function Item({ item, at, alone }: { item: InboxItem; at: number; alone: boolean }): JSX.Element {
  const session = useChannel<SessionState>(item.summary ? item.session : undefined, "session").value.state;
  const request = item.request;
  return (
    <article class="stack" style={{ gap: "8px" }} aria-label={`${item.title}: ${item.what}`}>
      <div class="row small">
        <Mark of={item.kind === "failure" ? "failed" : "needs"} />
        <a class="cut grow calm" href={item.url} title={item.title}><strong>{item.title}</strong></a>
        <span class="muted">{item.summary ? age(item.summary.modifiedAt, at) : ""}</span>
      </div>
      {request?.kind === "toolConfirmation" && <ApprovalCard request={request} session={session} />}
      {request?.kind === "chatInput" && <Question request={request} alone={alone} />}
      {request?.kind === "toolAuthentication" && <div class="card needs"><SignIn auth={request.toolCall.auth} server={serverOf(request.toolCall, item.session)} /></div>}
      {!request && item.kind === "failure" && <Failure item={item} />}
      {!request && item.kind === "sign-in" && item.resource && (
        <div class="card needs"><SignIn auth={{ reason: "required", resource: { resource: item.resource, resource_name: item.title } }} /></div>
      )}
      {!request && item.kind === "approval" && <a class="btn" href={item.url}>Open</a>}
    </article>
  );
}
