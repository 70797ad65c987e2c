/** Messages that wait for the agent, and messages that did not reach the host. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { ChatState, PendingMessage } from "../ahp/index.ts";
import { arrived, discard, failedMessages, sendMessage } from "../local/outbox.ts";
import { mayWrite } from "../local/me.ts";
import { inShort } from "../mirror/selectors.ts";
import { act, copy, focusNow, Icon, Lengthy, Menu, toast } from "../ui/bits.tsx";

export function Queue({ chat }: { chat: ChatState }): JSX.Element | null {
  const [editing, edit] = useState<{ id: string; text: string } | undefined>(undefined);
  const queue = chat.queuedMessages ?? [];
  const uri = chat.resource;
  const steering = chat.steeringMessage;
  if (!queue.length && !steering) return null;
  const maySteer = chat.activeTurn && !steering; // A second steering message would replace the one that waits.
  const move = (index: number, by: number): void => {
    const order = queue.map((each) => each.id);
    const [id] = order.splice(index, 1);
    order.splice(index + by, 0, id as string);
    void act(uri, { type: "chat/queuedMessagesReordered", order }, "chat");
  };
  const take = async ({ id, message }: PendingMessage, kind: "queued" | "steering" = "queued"): Promise<void> => {
    if (!(await act(uri, { type: "chat/pendingMessageRemoved", kind, id }, "chat"))) return;
    toast(kind === "queued" ? "Removed from the queue" : "Taken back", { label: "Undo", run: () => void act(uri, { type: "chat/pendingMessageSet", kind, id, message }, "chat") });
  };
  // The message leaves the queue when the agent takes it. An agent that cannot be steered gets it after the turn.
  const steer = async (each: PendingMessage): Promise<void> => {
    if (await act(uri, { type: "chat/pendingMessageSet", kind: "steering", id: crypto.randomUUID(), message: each.message }, "chat"))
      await act(uri, { type: "chat/pendingMessageRemoved", kind: "queued", id: each.id }, "chat");
  };
  return (
    <ul class="queue" aria-label="Queued messages">
      {steering && (
        <li><span class="chip needs">Steering</span><span class="cut grow" title={inShort(steering.message.text)}>{inShort(steering.message.text)}</span>
          {mayWrite() && <button type="button" class="btn quiet icon" aria-label="Take the steering message back" onClick={() => void take(steering, "steering")}><Icon name="close" /></button>}
        </li>
      )}
      {queue.map((each, index) => (
        <li key={each.id}>
          {!mayWrite() ? <span class="text grow" title={inShort(each.message.text)}>{inShort(each.message.text)}</span> : editing?.id === each.id ? (
            <form class="row grow" onSubmit={(event) => {
              event.preventDefault();
              void act(uri, { type: "chat/pendingMessageSet", kind: "queued", id: each.id, message: { ...each.message, text: editing.text } }, "chat");
              edit(undefined);
            }}>
              <textarea ref={focusNow} rows={2} aria-label="Queued message" value={editing.text} onInput={(event) => edit({ id: each.id, text: event.currentTarget.value })}
                onKeyDown={(event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.currentTarget.form?.requestSubmit()} />
              <button type="submit" class="btn">Save</button>
              <button type="button" class="btn quiet" onClick={() => edit(undefined)}>Cancel</button>
            </form>
          ) : (
            <>
              <span class="text grow" title={inShort(each.message.text)}>{inShort(each.message.text)}</span>
              <button type="button" class="btn quiet" onClick={() => edit({ id: each.id, text: each.message.text })}>Edit</button>
              {maySteer && <button type="button" class="btn quiet wide-only" title="The agent reads it while it works" onClick={() => void steer(each)}>Steer</button>}
              <button type="button" class="btn quiet icon wide-only" aria-label="Move up" disabled={index === 0} onClick={() => move(index, -1)}><Icon name="up" /></button>
              <button type="button" class="btn quiet icon wide-only" aria-label="Move down" disabled={index === queue.length - 1} onClick={() => move(index, 1)}><Icon name="down" /></button>
              <button type="button" class="btn quiet icon wide-only" aria-label="Remove from the queue" onClick={() => void take(each)}><Icon name="close" /></button>
              <span class="phone-only"><Menu label="What to do with this message" entries={[
                ...(maySteer ? [{ label: "Steer now", sub: "The agent reads it while it works", run: () => void steer(each) }] : []),
                { label: "Move up", disabled: index === 0, run: () => move(index, -1) },
                { label: "Move down", disabled: index === queue.length - 1, run: () => move(index, 1) },
                { label: "Remove from the queue", run: () => void take(each) },
              ]} /></span>
            </>
          )}
        </li>
      ))}
    </ul>
  );
}

export function Unsent({ state }: { state: ChatState }): JSX.Element | null {
  const chat = state.resource;
  const mine = failedMessages.value.filter((each) => each.chat === chat && !arrived(each, state));
  if (!mine.length) return null;
  return (
    <>
      {mine.map((each) => (
        <div key={each.id} class="said" role="alert">
          <div class="text"><Lengthy text={each.message.text} /></div>
          <p class="small danger break">Not sent: {each.reason}</p>
          <div class="row wrap">
            <button type="button" class="btn" onClick={() => void sendMessage(chat, each.message, each.how, each.id)}>Try again</button>
            <button type="button" class="btn quiet" onClick={() => void copy(each.message.text)}>Copy</button>
            <button type="button" class="btn quiet" onClick={() => discard(each.id)}>Discard</button>
          </div>
        </div>
      ))}
    </>
  );
}
