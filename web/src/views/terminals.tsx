/** Terminals beside the chat: the commands of this session's agent to watch, and shells to type into where the host allows it. */

import type { ComponentType, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { TerminalInfo } from "../ahp/index.ts";
import { mayWrite } from "../local/me.ts";
import { clientId, request, root } from "../mirror/store.ts";
import { Icon, Mark, tellRefused } from "../ui/bits.tsx";
import type { PanelProps } from "./session.tsx";

/** The terminals of this session's agent, and shells that people opened: a shell belongs to a window, not to a session. */
const shownIn = (session: string, terminals: TerminalInfo[]): TerminalInfo[] =>
  terminals.filter((each) => each.claim.kind === "client" || each.claim.session === session);

const isRunning = (terminal: TerminalInfo): boolean => terminal.lifecycle.status === "running";

/** Only terminals that have ended or that this window opened can be closed here. */
const canClose = (terminal: TerminalInfo): boolean => mayWrite() && (!isRunning(terminal) || terminal.claim.clientId === clientId);

export default function Terminals({ uri, session }: PanelProps): JSX.Element {
  const listed = shownIn(uri, root.value?.terminals ?? []);
  const [chosen, choose] = useState<string | undefined>(undefined);
  const [failure, fail] = useState("");
  const [View, set] = useState<ComponentType<{ uri: string; typing?: boolean }> | undefined>(undefined);
  const current = listed.find((each) => each.resource === chosen) ?? listed.findLast(isRunning) ?? listed.at(-1);
  useEffect(() => void import("../parts/terminal.tsx").then((module) => set(() => module.default)), []);
  const open = async (): Promise<void> => {
    const channel = `ahp-terminal:/${crypto.randomUUID()}`;
    const cwd = session.workingDirectories?.[0];
    try {
      await request("createTerminal", { channel, claim: { kind: "client", clientId }, ...(cwd ? { cwd } : {}) });
      choose(channel);
      fail("");
    } catch (error) {
      fail((error as Error).message);
    }
  };
  const close = (terminal: TerminalInfo): void =>
    void request("disposeTerminal", { channel: terminal.resource }).catch((error: Error) => tellRefused(error.message));
  const opener = (words: string): JSX.Element | false =>
    mayWrite() && <button type="button" class={words ? "btn" : "btn quiet icon"} aria-label="New terminal" title="New terminal" onClick={() => void open()}><Icon name="plus" />{words}</button>;
  const refused = failure && <p class="note danger small break" role="alert">No terminal was opened: {failure}.</p>;
  if (!current) return <div class="empty"><p>No terminal is open. Commands of the agent appear here while they run.</p>{opener(" New terminal")}{refused}</div>;
  return (
    <>
      <div class="row" style={{ padding: "4px 8px" }}>
        <div class="tabs grow" role="tablist" aria-label="Terminals">
          {listed.map((each) => (
            <button key={each.resource} type="button" role="tab" class="btn quiet" aria-selected={each === current} onClick={() => choose(each.resource)}>
              <Mark of={isRunning(each) ? "running" : "done"} /><span class="cut" title={each.title}>{each.title}</span>
            </button>
          ))}
        </div>
        {canClose(current) && <button type="button" class="btn quiet icon" aria-label={`Close the terminal ${current.title}`} title="Close this terminal" onClick={() => close(current)}><Icon name="close" /></button>}
        {opener("")}
      </div>
      {refused}
      {View ? <View key={current.resource} uri={current.resource} typing={current.resource === chosen} /> : <p class="empty">Loading…</p>}
    </>
  );
}
