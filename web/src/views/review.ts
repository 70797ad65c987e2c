/** Comments on lines that wait to be sent together: annotations on the session, collected here until one Send. */

import { signal } from "@preact/signals";
import type { Attachment, SessionState, Uri } from "../ahp/index.ts";
import { act } from "../ui/bits.tsx";

interface Pending {
  session: Uri;
  id: string;
}

export const pendingReview = signal<Pending[]>([]);

export const reviewCount = (session: Uri): number => pendingReview.value.filter((each) => each.session === session).length;

export const annotationsOf = (session: Uri, state: SessionState | undefined): Uri => state?.annotations?.resource ?? `${session}/annotations`;

export function reviewAttachment(session: Uri, state: SessionState | undefined): Attachment | undefined {
  const ids = pendingReview.value.filter((each) => each.session === session).map((each) => each.id);
  if (!ids.length) return undefined;
  return { type: "annotations", label: `${ids.length} ${ids.length === 1 ? "comment" : "comments"}`, resource: annotationsOf(session, state), annotationIds: ids };
}

export function sentReview(session: Uri): void {
  pendingReview.value = pendingReview.value.filter((each) => each.session !== session);
}

/** Put a comment on a line. */
export async function comment(session: Uri, state: SessionState | undefined, chat: Uri | undefined, resource: Uri, line: number, text: string): Promise<void> {
  const id = crypto.randomUUID();
  const at = { line: line - 1, character: 0 };
  const annotation = {
    id, origin: { session, ...(chat ? { chat } : {}) }, resource, range: { start: at, end: at }, resolved: false,
    entries: [{ id: crypto.randomUUID(), text }],
  };
  if (await act(annotationsOf(session, state), { type: "annotations/set", annotation }, "annotations")) pendingReview.value = [...pendingReview.value, { session, id }];
}
