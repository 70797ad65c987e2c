/** Canvases beside the chat, each in its own frame, which can reach neither the page nor its cookie. */

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { CanvasInstance } from "../ahp/index.ts";
import { frameFor, mayWrite } from "../local/me.ts";
import { act, Icon } from "../ui/bits.tsx";
import { checkCanvasUrl } from "./canvas-policy.ts";
import type { PanelProps } from "./session.tsx";

function Frame({ instance }: { instance: CanvasInstance }): JSX.Element {
  const [agreed, agree] = useState<string | undefined>(undefined);
  const verdict = checkCanvasUrl(instance.url, new URL(location.href));
  const stale = instance.availability === "stale";
  if (stale) return <div class="empty"><p><strong>Stale.</strong> Its provider is away. It comes back by itself.</p></div>;
  if (!verdict.url) return <div class="empty"><p>Not shown: {verdict.reason}.</p></div>;
  if (verdict.foreign && agreed !== verdict.url)
    return <div class="empty"><p class="break">This canvas is a page of <strong>{verdict.foreign}</strong>.</p><button type="button" class="btn" onClick={() => agree(verdict.url)}>Load it from there</button></div>;
  if (verdict.url.startsWith("data:")) return <DataFrame url={verdict.url} title={instance.title ?? instance.instanceId} />;
  const extra = { credentialless: "" } as Record<string, string>;
  return <iframe key={verdict.url} class="canvas-frame" title={instance.title ?? instance.instanceId} src={verdict.url} sandbox="allow-scripts allow-forms" referrerpolicy="no-referrer" allow="" {...extra} />;
}

/** A canvas whose whole content is in its address (`data:`). It would inherit this page's policy, so the host serves it with a different policy. */
function DataFrame({ url, title }: { url: string; title: string }): JSX.Element {
  const [path, lead] = useState<string | undefined>(undefined);
  const [error, fail] = useState("");
  useEffect(() => {
    let here = true;
    lead(undefined);
    frameFor(url).then((answer) => here && lead(answer.path), (problem: Error) => here && fail(problem.message));
    return () => {
      here = false;
    };
  }, [url]);
  if (error) return <div class="empty"><p>Not shown: {error}</p></div>;
  if (!path) return <div class="empty"><p>Loading…</p></div>;
  return <iframe class="canvas-frame" title={title} src={path} sandbox="allow-scripts allow-forms" referrerpolicy="no-referrer" allow="" />;
}

export default function Canvases({ uri, session }: PanelProps): JSX.Element {
  const open = session.openCanvases ?? [];
  const [chosen, choose] = useState<string | undefined>(undefined);
  const current = open.find((each) => each.instanceId === chosen) ?? open.findLast((each) => each.availability !== "stale") ?? open.at(-1);
  const close = (instance: CanvasInstance): void =>
    void act(uri, { type: "session/canvasInstanceCloseRequested", instanceId: instance.instanceId }, "session");
  if (!current) return <div class="empty"><p>No canvas is open. The agent opens one when it has something to show.</p></div>;
  return (
    <>
      <div class="row" style={{ padding: "4px 12px" }}>
        {open.length > 1 ? (
          <div class="tabs grow" role="tablist" aria-label="Canvases">
            {open.map((each) => <button key={each.instanceId} type="button" role="tab" class="btn quiet" aria-selected={each === current} onClick={() => choose(each.instanceId)}>{each.title ?? each.instanceId}{each.availability === "stale" ? " (stale)" : ""}</button>)}
          </div>
        ) : <strong class="cut grow small" title={current.title}>{current.title ?? current.instanceId}</strong>}
        {current.status && <span class="small muted cut" title={current.status}>{current.status}</span>}
        {current.availability === "stale" && open.length === 1 && <span class="chip needs">Stale</span>}
        {mayWrite() && <button type="button" class="btn quiet icon" aria-label="Close this canvas" onClick={() => close(current)}><Icon name="close" /></button>}
      </div>
      <Frame key={current.instanceId} instance={current} />
    </>
  );
}
