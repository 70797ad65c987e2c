/** Small pieces of interface: icons, marks, menus, dialogs, toasts, and the announcements for screen readers. */

import { signal } from "@preact/signals";
import { Component, type ComponentChildren, type FunctionComponent, h, type JSX, type RefObject } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import type { Action, ChannelKind, Uri } from "../ahp/index.ts";
import { pointed } from "../mirror/inbox.ts";
import { type Activity, inShort, WORDS } from "../mirror/selectors.ts";
import { dispatch } from "../mirror/store.ts";

/** Draw a component again only if one of its properties changed. */
export function memo<P extends object>(view: (props: P) => JSX.Element | null): FunctionComponent<P> {
  class Memo extends Component<P> {
    override shouldComponentUpdate(next: P): boolean {
      const before = this.props as Record<string, unknown>;
      const after = next as Record<string, unknown>;
      return Object.keys({ ...before, ...after }).some((key) => key !== "children" && before[key] !== after[key]);
    }
    override render(): JSX.Element {
      return h(view as FunctionComponent<P>, this.props as P);
    }
  }
  return Memo as unknown as FunctionComponent<P>;
}

const PATHS = {
  plus: "M8 3v10M3 8h10",
  inbox: "M2.5 9 4.500 3.500h7L13.500 9v3.500h-11zM2.500 9h3.200l1 1.500h2.600l1-1.500h3.200",
  list: "M5.500 4h8M5.500 8h8M5.500 12h8M2.500 4h.01M2.500 8h.01M2.500 12h.01",
  send: "M8 13V3M3.5 7.5 8 3l4.5 4.5",
  stop: "M4.5 4.5h7v7h-7z",
  more: "M3.5 8h.01M8 8h.01M12.5 8h.01",
  back: "M10 3 5 8l5 5",
  close: "M4 4l8 8M12 4l-8 8",
  attach: "M11 5.5 6.5 10a1.4 1.4 0 0 0 2 2l4.7-4.7a3 3 0 0 0-4.2-4.2L4.2 7.900a4.500 4.500 0 0 0 6.300 6.300L14 10.700",
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10M10.700 10.700 14 14",
  gear: "M8 10a2 2 0 1 0 0-4 2 2 0 0 0 0 4M8 1.500v2M8 12.500v2M1.500 8h2M12.500 8h2M3.400 3.400l1.400 1.400M11.200 11.200l1.400 1.400M3.400 12.600l1.400-1.400M11.200 4.800l1.400-1.400",
  up: "M4 10l4-4 4 4",
  down: "M4 6l4 4 4-4",
  right: "M6 4l4 4-4 4",
  person: "M8 8a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5M3.500 13.500a4.500 4.500 0 0 1 9 0",
} as const;

export function Icon({ name }: { name: keyof typeof PATHS }): JSX.Element {
  return (
    <svg width="1rem" height="1rem" viewBox="0 0 16 16" fill="none" stroke="currentColor" stroke-width={name === "more" ? 2.4 : 1.6} stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}

/** A state of work, or `todo` for a step that nobody has begun. */
type State = Activity | "todo";

const STATES: Record<State, string> = {
  needs: "M7 2 12 7 7 12 2 7z",
  running: "M11.5 7a4.5 4.5 0 1 1-9 0 4.5 4.5 0 0 1 9 0z",
  failed: "m3.500 3.500 7 7m0-7-7 7",
  done: "m2.500 7.500 3 3 6-7",
  todo: "M11.5 7a4.5 4.5 0 1 1-9 0 4.5 4.5 0 0 1 9 0z",
};

/** The drawing of a state. It stands on the line of the text beside it. */
export const MarkIcon = ({ of }: { of: State }): JSX.Element => (
  <span class={`mark ${of}`} aria-hidden="true"><svg width=".875rem" height=".875rem" viewBox="0 0 14 14" fill={of === "needs" ? "currentColor" : "none"} stroke="currentColor" stroke-width="1.7" stroke-linecap="round" stroke-linejoin="round"><path d={STATES[of]} /></svg></span>
);

/** A state as icon, word and colour. */
export function Mark({ of, word }: { of: State; word?: boolean }): JSX.Element {
  return (
    <>
      <MarkIcon of={of} />
      <span class={word ? undefined : "sr"}>{of === "todo" ? "Not begun" : WORDS[of]}</span>
    </>
  );
}

export interface MenuEntry {
  label: string;
  sub?: string;
  danger?: boolean;
  disabled?: boolean;
  /** The first of a group: a line separates it from those above. */
  apart?: boolean;
  /** Several variants, side by side below the label; `full` is the complete text of each. */
  choices?: { label: string; full: string; run(): void }[];
  run(): void;
}

/**
 * Characters that are invisible, or that change the order of others. With them a command could look different from the one that runs.
 * Joiners and variant selectors belong to letters of many languages and to emoji; after a letter of a command they only hide something.
 */
const UNSEEN = /([\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u2028\u2029\u2800\ufff9-\ufffb\p{Cs}]|\r(?!\n)|(?![\u200c\u200d\ufe00-\ufe0f])\p{Default_Ignorable_Code_Point}|(?<=[\u0000-\u007f])[\u200c\u200d\ufe00-\ufe0f](?!\u20e3))/u;

/** The same, and unusual spaces that only look like a space: to a program they are letters. */
const UNSEEN_OR_ODD = new RegExp(`${UNSEEN.source.slice(0, -1)}|(?! )\\p{Zs})`, "u");

/** A text in which nothing is hidden: invisible characters are shown by their numbers. `input`: the text is for a program, so unusual spaces are shown as well. */
export function Exact({ text, input = false }: { text: string; input?: boolean }): JSX.Element {
  const hidden = input ? UNSEEN_OR_ODD : UNSEEN;
  if (!hidden.test(text)) return <>{text}</>;
  return <>{text.split(hidden).map((part, index) => (index % 2 ? <span key={index} class="unseen">U+{part.codePointAt(0)?.toString(16).toUpperCase().padStart(4, "0")}</span> : part))}</>;
}

/** Characters of a text that are drawn at once: millions of them take the browser many seconds. */
const MUCH = 20_000;

/** A text of any length. Of a very long text only the beginning is shown, and the rest on request. */
export function Lengthy({ text }: { text: string }): JSX.Element {
  const [all, set] = useState(false);
  if (all || text.length <= MUCH) return <Exact text={text} />;
  return <><Exact text={text.slice(0, MUCH)} />… <button type="button" class="btn tiny" onClick={() => set(true)}>Show all</button></>;
}

/** If drawing the content fails, only this part of the page is lost. With another `of` it is drawn again. */
export class Boundary extends Component<{ of?: unknown; children: ComponentChildren }, { broken: boolean }> {
  override state = { broken: false };
  static override getDerivedStateFromError(): { broken: boolean } {
    return { broken: true };
  }
  override componentDidUpdate(before: { of?: unknown }): void {
    if (this.state.broken && before.of !== this.props.of) this.setState({ broken: false });
  }
  override render(): ComponentChildren {
    return this.state.broken ? <p class="note danger small">This part cannot be shown: something in it is not as it should be.</p> : this.props.children;
  }
}

/** A button with a menu below it, in the browser's own top layer. */
export function Menu(props: { label: string; entries: MenuEntry[]; class?: string; children?: ComponentChildren; disabled?: boolean }): JSX.Element {
  const id = useId();
  const button = useRef<HTMLButtonElement>(null);
  const layer = useRef<HTMLDivElement>(null);
  const place = (): void => {
    const at = button.current?.getBoundingClientRect();
    const box = layer.current;
    if (!at || !box) return;
    const below = innerHeight - at.bottom;
    box.style.left = `${Math.max(8, Math.min(at.left, innerWidth - box.offsetWidth - 8))}px`;
    box.style.top = below > box.offsetHeight + 8 ? `${at.bottom + 4}px` : `${Math.max(8, at.top - box.offsetHeight - 4)}px`;
  };
  const move = (event: KeyboardEvent): void => {
    const items = [...(layer.current?.querySelectorAll<HTMLButtonElement>(".menu-item") ?? [])];
    const step = event.key === "ArrowDown" || event.key === "ArrowRight" ? 1 : event.key === "ArrowUp" || event.key === "ArrowLeft" ? -1 : 0;
    if (!step) return;
    event.preventDefault();
    const index = items.indexOf(document.activeElement as HTMLButtonElement);
    items[(index + step + items.length) % items.length]?.focus();
  };
  return (
    <>
      <button ref={button} type="button" class={props.class ?? "btn quiet icon"} aria-label={props.label} title={props.label} aria-haspopup="menu" popovertarget={id} disabled={props.disabled}>
        {props.children ?? <Icon name="more" />}
      </button>
      <div ref={layer} id={id} popover="auto" role="menu" aria-label={props.label} onKeyDown={move}
        onToggle={(event) => {
          if ((event as unknown as ToggleEvent).newState === "open") place();
        }}>
        {/* The browser focuses the first entry at the moment the menu opens, so that a key pressed right after that goes to the menu. */}
        {props.entries.map((entry, index) => entry.choices ? (
          <div key={entry.label} class="menu-group" role="group" aria-label={entry.label}>
            <span class="break">{entry.label}</span>
            {entry.sub && <span class="sub">{entry.sub}</span>}
            <div class="row wrap" style={{ gap: "4px" }}>
              {entry.choices.map((choice, at) => (
                <button key={choice.full} type="button" role="menuitem" autofocus={index === 0 && at === 0} class="menu-item choice" aria-label={choice.full} onClick={() => {
                  layer.current?.hidePopover();
                  choice.run();
                }}>{choice.label}</button>
              ))}
            </div>
          </div>
        ) : (
          <button key={entry.label} type="button" role="menuitem" autofocus={index === 0} class={`menu-item${entry.danger ? " danger" : ""}${entry.apart ? " apart" : ""}`} disabled={entry.disabled}
            onClick={() => {
              layer.current?.hidePopover();
              entry.run();
            }}>
            <span>{entry.label}</span>
            {entry.sub && <span class="sub">{entry.sub}</span>}
          </button>
        ))}
      </div>
    </>
  );
}

/** A native dialog that is open as long as this component is shown. Escape closes only the dialog; the focus then returns to where it was. */
export function Dialog(props: { label: string; onClose(): void; children: ComponentChildren }): JSX.Element {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    ref.current?.showModal();
    return () => void requestAnimationFrame(() => before?.isConnected && focusWhenNowhere(before));
  }, []);
  return (
    <dialog ref={ref} aria-label={props.label} onClose={props.onClose}
      onClick={(event) => event.target === ref.current && ref.current?.close()}>
      {props.children}
    </dialog>
  );
}

// A question before something that cannot be undone.

const asked = signal<{ text: string; yes: string; resolve(answer: boolean): void } | undefined>(undefined);

export const confirmed = (text: string, yes: string): Promise<boolean> =>
  new Promise((resolve) => {
    asked.value = { text, yes, resolve };
  });

export function Confirm(): JSX.Element | null {
  const question = asked.value;
  if (!question) return null;
  const answer = (value: boolean): void => {
    asked.value = undefined;
    question.resolve(value);
  };
  return (
    <Dialog label="Please confirm" onClose={() => asked.value && answer(false)}>
      <div class="inside">
        <p class="break" style={{ whiteSpace: "pre-wrap" }}>{question.text}</p>
        <div class="row">
          <button type="button" class="btn" onClick={() => answer(false)}>Cancel</button>
          <button type="button" class="btn bad" onClick={() => answer(true)}>{question.yes}</button>
        </div>
      </div>
    </Dialog>
  );
}

// Toasts: short, with an undo button where something can be undone.

interface Toast {
  id: number;
  text: string;
  action?: { label: string; run(): void };
}

const toasts = signal<Toast[]>([]);
let next = 1;

export function toast(text: string, action?: Toast["action"]): void {
  const entry = { id: next++, text, ...(action ? { action } : {}) };
  toasts.value = [...toasts.value.filter((each) => each.text !== text).slice(-2), entry];
  setTimeout(() => dismiss(entry.id), action ? 10_000 : 6_000);
  announce(text);
}

const dismiss = (id: number): void => {
  toasts.value = toasts.value.filter((each) => each.id !== id);
};

export function Toasts(): JSX.Element {
  return (
    <div class="toasts">
      {toasts.value.map((each) => (
        <div key={each.id} class="toast">
          <span class="break">{each.text}</span>
          {each.action && (
            <button type="button" class="btn" onClick={() => {
              dismiss(each.id);
              each.action?.run();
            }}>{each.action.label}</button>
          )}
          <button type="button" class="btn icon bare" aria-label="Dismiss" onClick={() => dismiss(each.id)}><Icon name="close" /></button>
        </div>
      ))}
    </div>
  );
}

/** The text about an answer that the host refused. */
export const tellRefused = (reason: string): void => toast(`Not done: ${reason}`);

/** Dispatch an action, and tell the person if the host refuses it. Returns whether it was accepted. */
export async function act(channel: Uri, action: Action, kind: ChannelKind): Promise<boolean> {
  const outcome = await dispatch(channel, action, kind);
  if (!outcome.accepted) tellRefused(outcome.reason);
  return outcome.accepted;
}

// What screen readers say: "Working", "Answer complete", "Needs approval: run command".

const said = signal("");
export const announce = (text: string): void => {
  const words = inShort(text);
  said.value = said.peek() === words ? `${words}\u00a0` : words;
};
export const Announcer = (): JSX.Element => <div class="sr" role="status" aria-live="polite">{said.value}</div>;

/** The present time, updated regularly, for ages and durations. */
export function useNow(every: number, active = true): number {
  const [at, set] = useState(Date.now());
  useEffect(() => {
    if (!active) return undefined;
    const timer = setInterval(() => set(Date.now()), every);
    return () => clearInterval(timer);
  }, [every, active]);
  return at;
}

/** Copies text, and tells the person that it did. */
export async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    announce("Copied");
  } catch {
    toast("The browser did not allow copying.");
  }
}

export function CopyButton({ text, label = "Copy" }: { text(): string; label?: string }): JSX.Element {
  const [done, set] = useState(false);
  return (
    <button type="button" class="btn quiet" onClick={() => {
      void copy(text());
      set(true);
      setTimeout(() => set(false), 1500);
    }}>{done ? "Copied" : label}</button>
  );
}

/** Gives a field that the person opened the focus as soon as it exists. */
export const focusNow = (element: HTMLElement | null): void => element?.focus();

/** The region that has the focus only because the focused element was removed. */
let lent: Element | undefined;

/** Focus the field for the next message, unless the person has moved the focus elsewhere. Not on a phone: its keyboard would cover the page. */
export function focusWhenNowhere(element: HTMLElement | null | undefined): void {
  const nowhere = document.activeElement === document.body || document.activeElement === lent;
  if (nowhere && matchMedia("(pointer: fine)").matches) element?.focus({ preventScroll: true });
}

const REGIONS = "#region-sessions, #region-main, #region-side";

/**
 * The focus is never lost. When the focused element is removed, such as the button of an answer, the region around it gets the focus; in the
 * main region that is the field for the next message. When the element is disabled, a button beside it gets the focus.
 */
export function keepKeyboard(): void {
  let last: { element: Element; region: Element | null } | undefined;
  const remember = (event: Event): void => {
    lent = undefined;
    const element = event.target instanceof Element ? event.target.closest("button, a, input, select, textarea, summary, [tabindex]") : null;
    last = element ? { element, region: element.closest(REGIONS) ?? last?.region ?? null } : undefined; // A dialog belongs to the region it was opened from.
  };
  const isOut = (): boolean => last !== undefined && (!last.element.isConnected || last.element.matches(":disabled"));
  const give = (): void => {
    if (!isOut() || document.activeElement !== document.body || document.querySelector("dialog[open]")) return;
    const beside = last?.element.isConnected ? last.element.parentElement?.querySelector<HTMLElement>("button:enabled") : undefined;
    if (beside) return beside.focus();
    const region = last?.region?.isConnected ? last.region : document.getElementById("region-main");
    last = undefined;
    if (region?.id === "region-main") focusWhenNowhere(region.querySelector<HTMLElement>(".composer textarea"));
    if (document.activeElement !== document.body) return;
    (region as HTMLElement | null)?.focus({ preventScroll: true });
    lent = region ?? undefined;
  };
  // A moment later, because a dialog gives the focus back, or a view that opens takes it.
  const look = (): void => void (isOut() && requestAnimationFrame(() => requestAnimationFrame(give)));
  addEventListener("focusin", remember);
  addEventListener("pointerdown", remember);
  new MutationObserver(look).observe(document.body, { subtree: true, childList: true, attributes: true, attributeFilter: ["disabled"] });
}

/** Wait until no dialog is open and the focus is back where it was before. */
export function afterDialog(run: () => void): void {
  if (document.querySelector("dialog[open]")) requestAnimationFrame(() => afterDialog(run));
  else requestAnimationFrame(() => requestAnimationFrame(run));
}

/** Focus a region of the page. Until it exists, the main region has the focus. If the person moves the focus meanwhile, it stays there. */
export function focusSoon(id: string): void {
  const main = document.getElementById("region-main");
  main?.focus({ preventScroll: true });
  const look = (frames: number): void => {
    if (document.activeElement !== document.body && document.activeElement !== main) return;
    const region = document.getElementById(id);
    if (region) region.focus({ preventScroll: true });
    else if (frames > 0) requestAnimationFrame(() => look(frames - 1));
  };
  look(120);
}

/** The card of a request. It gets the focus only if the person asked to be brought to one of `keys`. */
export function usePointed<T extends HTMLElement>(keys: string[], show?: (key: string) => void): RefObject<T | null> {
  const card = useRef<T>(null);
  const mine = keys.find((key) => key === pointed.value);
  useEffect(() => {
    if (mine === undefined) return;
    pointed.value = undefined;
    show?.(mine);
    card.current?.focus();
  }, [mine]);
  return card;
}
