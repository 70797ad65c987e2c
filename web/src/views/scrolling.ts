/** The scroll position of the transcript: it follows the end until somebody scrolls away, and stays in place while turns are added above. */

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

/** Frames until turns that scroll into view have their real heights. Before that, heights are estimated. */
const SETTLING = 12;

/** Keep a turn at its place on the screen while the turns above it get their real heights. */
export function hold(box: Element, turn: Element, top: number, frames = SETTLING): void {
  const moved = turn.getBoundingClientRect().top - top;
  if (Math.abs(moved) >= 1) box.scrollTop += moved;
  if (frames > 0 && turn.isConnected) requestAnimationFrame(() => hold(box, turn, top, frames - 1));
}

/** The scrollbar takes room from the text, so the composer below becomes narrower by the same width, and both have the same edges. */
function alignDock(box: HTMLElement | null): void {
  if (box) box.parentElement?.style.setProperty("--gutter", `${(box.offsetWidth - box.clientWidth) / 2}px`);
}

/** Scroll a card into view: in the middle, or from its top if it is taller than the view. */
export function showWhole(card: Element | null, box: Element | null): void {
  card?.scrollIntoView({ block: card.clientHeight > (box?.clientHeight ?? 0) ? "start" : "center" });
}

interface Following {
  ref: { current: HTMLDivElement | null };
  /** True while somebody reads above the end. */
  detached: boolean;
  toEnd(): void;
  letGo(): void;
  onScroll(): void;
  onInput(): void;
}

/** `asked` is the question that waits. A question that is too tall for the view is shown from its top; when it is answered, the chat follows its end again. */
export function useFollowing(key: unknown, asked: string | undefined): Following {
  const ref = useRef<HTMLDivElement>(null);
  const touched = useRef(Number.NEGATIVE_INFINITY);
  const following = useRef(true);
  const waiting = useRef(asked);
  const fromTop = useRef<string | undefined>(undefined);
  const [detached, set] = useState(false);
  const follow = (): void => {
    const box = ref.current;
    if (!following.current || !box) return;
    box.scrollTop = box.scrollHeight;
    const form = waiting.current === fromTop.current ? null : box.querySelector("form.card.needs");
    if (!form || form.getBoundingClientRect().top >= box.getBoundingClientRect().top) return;
    fromTop.current = waiting.current;
    letGo();
    form.scrollIntoView({ block: "start" });
  };
  const toEnd = (): void => {
    following.current = true;
    set(false);
    follow();
  };
  const letGo = (): void => {
    following.current = false;
    set(true);
  };
  const onScroll = (): void => {
    const box = ref.current;
    if (!box) return;
    const atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 48;
    // Content that grows moves the end away, too; only scrolling by a person stops the chat from following it.
    if (!atEnd && performance.now() - touched.current > 1_000) return;
    following.current = atEnd;
    set(!atEnd);
  };
  const onInput = (): void => {
    touched.current = performance.now();
  };
  useLayoutEffect(() => {
    waiting.current = asked;
    if (fromTop.current !== undefined && fromTop.current !== asked) {
      fromTop.current = undefined;
      toEnd();
    } else follow();
  }, [key, asked]);
  // Content that grows by itself (images, diffs, fonts) keeps the end in sight as well.
  useEffect(() => {
    const inner = ref.current?.firstElementChild;
    if (!inner) return undefined;
    const observer = new ResizeObserver(() => {
      alignDock(ref.current);
      follow();
    });
    observer.observe(inner);
    if (ref.current) observer.observe(ref.current);
    return () => observer.disconnect();
  }, []);
  return { ref, detached, toEnd, letGo, onScroll, onInput };
}

/** Looking for a very old turn ends after this many portions of older turns. */
const PORTIONS = 25;

/** Bring the turn that the address names into view, once. Older turns are loaded until it is there; `first` is the oldest one now. */
export function useNamedTurn(named: string | undefined, first: string | undefined, { ref, letGo }: Following, older: (() => void) | undefined): void {
  const search = useRef<{ named: string; left: number } | undefined>(undefined);
  useLayoutEffect(() => {
    if (named !== search.current?.named) search.current = named === undefined ? undefined : { named, left: PORTIONS };
    const box = ref.current;
    if (!box || !search.current || search.current.left <= 0) return;
    const turn = box.querySelector(`[data-turn="${CSS.escape(search.current.named)}"]`);
    search.current.left = turn ? 0 : search.current.left - 1;
    if (!turn) return older?.();
    letGo();
    turn.scrollIntoView({ block: "start" });
    hold(box, turn, turn.getBoundingClientRect().top);
  }, [named, first]);
}
