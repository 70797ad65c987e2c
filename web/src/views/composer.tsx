/** Where messages are written: draft, attachments, completions, mode and model, send, queue, steer, stop. */

import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Attachment, ChatState, ConfigProperty, Message, ModelSelection, SessionState, Uri } from "../ahp/index.ts";
import { mayWrite, onlyWords } from "../local/me.ts";
import { sendMessage, userMessage, type How } from "../local/outbox.ts";
import { type Draft, loadDraft, saveDraft, sendWith } from "../local/settings.ts";
import { dispatch, hostInfo, known, link, request, root } from "../mirror/store.ts";
import { size } from "../parts/markdown.tsx";
import { act, announce, focusWhenNowhere, Icon, Menu, toast } from "../ui/bits.tsx";

const SHARE = 500;
/** How many completions are shown; the list says how many more there are. */
const SHOWN = 50;
const MAX_ATTACHMENT = 8_000_000;
/** The most characters of a draft: in a longer field a browser takes seconds for each key. A longer pasted text is attached instead. */
const LONGEST_DRAFT = 200_000;

interface Completion {
  insertText: string;
  rangeStart?: number;
  rangeEnd?: number;
  attachment: Attachment;
}

/** The description of a completion, if the host gives one that is not just the name. */
function aboutCompletion({ insertText, attachment }: Completion): string {
  const about = attachment?._meta?.description;
  if (typeof about === "string" && about) return about;
  return attachment && attachment.label.trim() !== insertText.trim() ? attachment.label : "";
}

/** Characters of the longest word that can be completed. */
const LONGEST_WORD = 1_000;

/** The word that ends at the caret. The search goes backwards, because a pattern would start again at each letter of a long pasted text. */
function wordBefore(text: string, caret: number): string {
  let start = caret;
  while (start > 0 && caret - start < LONGEST_WORD && !/\s/.test(text.charAt(start - 1))) start -= 1;
  return text.slice(start, caret);
}

async function asAttachment(file: File): Promise<Attachment | undefined> {
  if (file.size > MAX_ATTACHMENT) {
    toast(`${file.name} is too large to attach (${size(file.size)}; at most ${size(MAX_ATTACHMENT)}).`);
    return undefined;
  }
  const url = await new Promise<string>((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result as string);
    reader.onerror = () => reject(new Error("unreadable"));
    reader.readAsDataURL(file);
  });
  const type = file.type || "application/octet-stream";
  return { type: "embeddedResource", label: file.name || "pasted image", data: url.slice(url.indexOf(",") + 1), contentType: type, displayKind: type.startsWith("image/") ? "image" : "file" };
}

/** Properties that can still be changed and have a short list of values: modes and the like. */
export const modes = (session: SessionState | undefined): [string, ConfigProperty][] =>
  Object.entries(session?.config?.schema.properties ?? {}).filter(([, property]) => property.sessionMutable && !property.readOnly && property.enum && property.enum.length > 1);

function Modes({ uri, session }: { uri: Uri; session: SessionState | undefined }): JSX.Element {
  return (
    <>
      {modes(session).slice(0, 3).map(([name, property]) => (
        <select key={name} aria-label={property.title} title={property.title} value={String(session?.config?.values[name] ?? property.default ?? "")}
          onChange={(event) => {
            const value = property.enum?.[event.currentTarget.selectedIndex];
            void act(uri, { type: "session/configChanged", config: { [name]: value } }, "session");
          }}>
          {property.enum?.map((value, index) => <option key={String(value)} value={String(value)}>{property.enumLabels?.[index] ?? String(value)}</option>)}
        </select>
      ))}
    </>
  );
}

interface Props {
  uri: Uri;
  session: SessionState | undefined;
  chat: ChatState;
  onSent(): void;
  review: { count: number; attachment(): Attachment | undefined; sent(): void };
}

export function Composer({ uri, session, chat, onSent, review }: Props): JSX.Element {
  const chatUri = chat.resource;
  const area = useRef<HTMLTextAreaElement>(null);
  const file = useRef<HTMLInputElement>(null);
  const [draft, setDraft] = useState<Draft>(() => firstDraft(chatUri, chat));
  const [items, setItems] = useState<Completion[]>([]);
  const [further, setFurther] = useState(0);
  const [chosen, choose] = useState(0);
  const [model, setModel] = useState<ModelSelection | undefined>(() => chat.draft?.model ?? chat.turns.at(-1)?.message.model);
  const shared = useRef(sharedDraft(chat));
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const asked = useRef(0);
  /** Where the caret was when the completions were asked for. */
  const askedAt = useRef(0);
  const [dropping, hover] = useState(false);
  const busy = chat.activeTurn !== undefined;
  useEffect(() => focusWhenNowhere(area.current), []);
  const readOnly = chat.interactivity === "read-only" || chat.interactivity === "hidden";
  const agent = root.value?.agents.find((each) => each.provider === session?.provider);

  // Another window has changed the draft: take it over, unless this window has unsent changes.
  const remote = sharedDraft(chat);
  useEffect(() => {
    if (remote === shared.current) return;
    const untouched = draft.text === shared.current;
    shared.current = remote;
    if (untouched && timer.current === undefined) update({ ...draft, text: remote, at: Date.now() }, false);
  }, [remote]);

  useLayoutEffect(() => {
    const element = area.current;
    if (!element) return;
    element.style.height = "auto";
    element.style.height = `${Math.min(element.scrollHeight, innerHeight * 0.4)}px`;
  }, [draft.text]);

  function update(next: Draft, share = true): void {
    setDraft(next);
    saveDraft(chatUri, next);
    if (!share) return;
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      timer.current = undefined;
      shareDraft(next.text);
    }, SHARE);
  }

  function shareDraft(text: string): void {
    if (text === shared.current || readOnly) return;
    shared.current = text;
    const action = text ? { type: "chat/draftChanged", draft: userMessage(text) } : { type: "chat/draftChanged" };
    void dispatch(chatUri, action, "chat");
  }

  /** A second steering message would take the place of one that the agent has not taken yet, so it is queued. */
  function steer(): void {
    const waits = known<ChatState>(chatUri)?.steeringMessage !== undefined;
    if (waits) toast("The agent has not taken the last one yet. This one is queued.");
    send(waits ? "queued" : "steering");
  }

  function send(how: How): void {
    const extra = review.count ? review.attachment() : undefined;
    const attachments = [...draft.attachments, ...(extra ? [extra] : [])] as Attachment[];
    if (!draft.text.trim() && !attachments.length) return;
    const message: Message = userMessage(draft.text, { ...(attachments.length ? { attachments } : {}), ...(model ? { model } : {}) });
    clearTimeout(timer.current);
    timer.current = undefined;
    setDraft({ text: "", attachments: [], at: Date.now() });
    saveDraft(chatUri, undefined); // From here on the outbox keeps the message until the host has it.
    setItems([]);
    if (link.value !== "live") toast("Not connected. The message goes out when the host is back.");
    void sendMessage(chatUri, message, how).then((accepted) => {
      if (accepted && extra) review.sent();
    });
    shareDraft("");
    onSent();
    area.current?.focus();
  }

  function stop(): void {
    const turn = chat.activeTurn;
    if (!turn) return;
    const spent = Math.max(0, Date.now() - Date.parse(turn.startedAt)) || 0;
    announce("Stopping");
    if (matchMedia("(pointer: fine)").matches) area.current?.focus(); // The button disappears when the turn ends.
    void act(chatUri, { type: "chat/turnCancelled", turnId: turn.id, duration: spent }, "chat");
  }

  async function complete(text: string, offset: number): Promise<void> {
    const triggers = hostInfo.value?.completionTriggerCharacters ?? ["/", "@", "#"];
    const word = wordBefore(text, offset);
    if (!triggers.some((trigger) => word.startsWith(trigger)) || link.value !== "live") return setItems([]);
    const turn = ++asked.current;
    try {
      const answer = await request<{ items: Completion[]; _meta?: { "ahpkit/more"?: number } }>("completions", { channel: chatUri, kind: "userMessage", text, offset });
      if (turn === asked.current) {
        askedAt.current = offset;
        setItems(answer.items.slice(0, SHOWN));
        setFurther(Math.max(0, answer.items.length - SHOWN) + (answer._meta?.["ahpkit/more"] ?? 0));
        choose(0);
      }
    } catch {
      setItems([]);
    }
  }

  function accept(item: Completion): void {
    const offset = area.current?.selectionStart ?? draft.text.length;
    const start = item.rangeStart ?? offset - wordBefore(draft.text, offset).length;
    const end = (item.rangeEnd ?? askedAt.current) + offset - askedAt.current; // Letters that were typed since then belong to the word.
    const text = `${draft.text.slice(0, start)}${item.insertText}${draft.text.slice(end)}`;
    const plainOne = item.attachment?.type === "simple" && !item.attachment.modelRepresentation;
    const attachments = item.attachment && !plainOne ? [...draft.attachments, item.attachment as Draft["attachments"][0]] : draft.attachments;
    const caret = start + item.insertText.length;
    if (area.current) {
      // Now, not in the next frame, because a key that is pressed meanwhile must come after the completion.
      area.current.value = text;
      area.current.setSelectionRange(caret, caret);
      area.current.focus();
    }
    update({ text, attachments, at: Date.now() });
    setItems([]);
  }

  function onKey(event: KeyboardEvent): void {
    if (event.isComposing || event.keyCode === 229) return;
    if (items.length) {
      if (event.key === "ArrowDown" || event.key === "ArrowUp") {
        event.preventDefault();
        return choose((chosen + (event.key === "ArrowDown" ? 1 : -1) + items.length) % items.length);
      }
      const typed = wordBefore(draft.text, area.current?.selectionStart ?? 0);
      const whole = event.key === "Enter" && items.some((item) => item.insertText.trim() === typed);
      if (!whole && (event.key === "Enter" || event.key === "Tab")) {
        event.preventDefault();
        return accept(items[chosen] as Completion);
      }
      if (event.key === "Escape") {
        event.preventDefault();
        event.stopPropagation();
        return setItems([]);
      }
    }
    if (event.key !== "Enter" || event.shiftKey || event.altKey) return;
    const control = event.ctrlKey || event.metaKey;
    const phone = matchMedia("(max-width: 44.99em)").matches && matchMedia("(pointer: coarse)").matches;
    if (control || (sendWith.value === "enter" && !phone)) {
      event.preventDefault();
      send(busy ? "queued" : "turn");
    }
  }

  async function attach(files: Iterable<File>): Promise<void> {
    const found = (await Promise.all([...files].map(asAttachment))).filter((each) => each !== undefined);
    if (found.length) setDraft((now) => {
      const next = { ...now, attachments: [...now.attachments, ...(found as Draft["attachments"])], at: Date.now() };
      saveDraft(chatUri, next);
      return next;
    });
  }

  // Files may be dropped anywhere: outside of the field, the browser would otherwise leave the page to show them.
  useEffect(() => {
    const over = (event: DragEvent): void => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      hover(event.type === "dragover" || event.relatedTarget !== null);
    };
    const drop = (event: DragEvent): void => {
      hover(false);
      if (!event.dataTransfer?.files.length) return;
      event.preventDefault();
      void attach(event.dataTransfer.files);
    };
    const ends = new AbortController();
    for (const type of ["dragover", "dragleave"] as const) addEventListener(type, over, ends);
    addEventListener("drop", drop, ends);
    return () => ends.abort();
  }, []);

  useEffect(() => {
    const key = (event: KeyboardEvent): void => {
      if ((event.ctrlKey || event.metaKey) && event.key === "." && chat.activeTurn) {
        event.preventDefault();
        stop();
      }
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, [chat.activeTurn]);

  if (!mayWrite()) return <p class="note small" style={{ marginTop: "12px" }}>{onlyWords()}</p>;
  if (readOnly) return <p class="note small" style={{ marginTop: "12px" }}>This chat can be read but not written to.</p>;
  const listId = "completions";
  return (
    <div class={`composer${dropping ? " dropping" : ""}`}>
      {items.length > 0 && (
        <div class="completions">
          <div role="listbox" id={listId} aria-label="Completions">
            {items.map((item, index) => (
              <button key={`${item.insertText}${index}`} id={`completion-${index}`} type="button" role="option" tabIndex={-1} class="menu-item" aria-selected={index === chosen}
                onPointerDown={(event) => event.preventDefault()} onClick={() => accept(item)}>
                <span class="break">{item.insertText}</span>
                <span class="sub break">{aboutCompletion(item)}</span>
              </button>
            ))}
          </div>
          {further > 0 && <p class="note small">{further} more. Type on to find them.</p>}
        </div>
      )}
      {draft.attachments.length > 0 && (
        <div class="attachments">
          {draft.attachments.map((each, index) => (
            <span key={index} class="chip">
              {each.displayKind === "image" && typeof each.data === "string" ? <img alt={each.label} src={`data:${String(each.contentType)};base64,${each.data}`} /> : each.label}
              <button type="button" class="btn quiet icon" style={{ minHeight: "24px", width: "24px" }} aria-label={`Remove ${each.label}`}
                onClick={() => update({ ...draft, attachments: draft.attachments.filter((_, at) => at !== index), at: Date.now() })}><Icon name="close" /></button>
            </span>
          ))}
        </div>
      )}
      <textarea ref={area} rows={1} dir="auto" aria-label="Message" placeholder={busy ? "Queue a message, or steer the agent" : "Ask, or type / for commands"} value={draft.text}
        {...(items.length ? { "aria-controls": listId, "aria-activedescendant": `completion-${chosen}` } : {})}
        onInput={(event) => {
          const { value, selectionStart } = event.currentTarget;
          update({ ...draft, text: value, at: Date.now() });
          void complete(value, selectionStart);
        }}
        onKeyDown={onKey}
        onBlur={() => {
          setItems([]);
          if (timer.current) {
            clearTimeout(timer.current);
            timer.current = undefined;
            shareDraft(draft.text);
          }
        }}
        onPaste={(event) => {
          const files = [...(event.clipboardData?.files ?? [])];
          const text = event.clipboardData?.getData("text/plain") ?? "";
          if (!files.length && text.length > LONGEST_DRAFT) files.push(new File([text], "pasted text.txt", { type: "text/plain" }));
          if (!files.length) return;
          event.preventDefault();
          void attach(files);
        }} />
      <div class="bar">
        <button type="button" class="btn quiet icon" aria-label="Attach files" title="Attach files" onClick={() => file.current?.click()}><Icon name="attach" /></button>
        <input ref={file} type="file" multiple hidden aria-label="Files to attach" onChange={(event) => {
          void attach(event.currentTarget.files ?? []);
          event.currentTarget.value = "";
        }} />
        <div class="picks">
        <Modes uri={uri} session={session} />
        {agent && agent.models.length > 1 && (
          <select aria-label="Model" title="Model" value={model?.id ?? ""} onChange={(event) => setModel(event.currentTarget.value ? { id: event.currentTarget.value } : undefined)}>
            <option value="">Default model</option>
            {agent.models.map((each) => <option key={each.id} value={each.id}>{each.name}</option>)}
          </select>
        )}
        </div>
        <div class="send">
          {busy && <button type="button" class="btn" onClick={stop} title="Stop (Ctrl+.)"><Icon name="stop" /><span class="word">Stop</span></button>}
          {busy ? (
            <>
              <button type="button" class="btn primary" title="It is sent when this turn ends" onClick={() => send("queued")}><span class="phone-only"><Icon name="send" /></span><span class="word">Queue</span></button>
              <Menu label="Ways to send" class="btn icon" entries={[
                { label: "Steer now", sub: "The agent reads it while it works", run: steer },
                { label: "Queue", sub: "It is sent when this turn ends", run: () => send("queued") },
                { label: "Stop and send", sub: "This turn is cancelled first", run: () => {
                  stop();
                  send("queued");
                } },
              ]}><Icon name="up" /></Menu>
            </>
          ) : (
            <button type="button" class="btn primary icon" aria-label="Send" title="Send" disabled={!draft.text.trim() && !draft.attachments.length && !review.count} onClick={() => send("turn")}><Icon name="send" /></button>
          )}
        </div>
      </div>
    </div>
  );
}

/** Text that was typed in this window wins over a draft that another window shared, unless there is none here. */
function firstDraft(chatUri: Uri, chat: ChatState): Draft {
  const mine = loadDraft(chatUri);
  if (mine) return mine;
  return { text: sharedDraft(chat), attachments: [], at: 0 };
}

/** The draft that all windows share, unless it is longer than a field can hold. */
function sharedDraft(chat: ChatState): string {
  const text = chat.draft?.text ?? "";
  return text.length > LONGEST_DRAFT ? "" : text;
}
