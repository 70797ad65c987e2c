/** Customizations and MCP servers of a session: what is loaded, from where, on or off and why, and who may use it. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Customization, Enablement, SessionState } from "../ahp/index.ts";
import { nameOf, pathOf } from "../mirror/selectors.ts";
import { dispatch, request } from "../mirror/store.ts";
import { Mark, tellRefused } from "../ui/bits.tsx";
import type { PanelProps } from "./session.tsx";
import { SignIn } from "./signin.tsx";

const KINDS: Record<string, string> = { plugin: "Plugin", directory: "Directory", agent: "Agent", skill: "Skill", prompt: "Prompt", rule: "Rule", hook: "Hook", mcpServer: "MCP server" };
const SCOPES: Record<Enablement["kind"], string> = { session: "this session", workspace: "this workspace", global: "everywhere" };

const scoped = (item: Customization): boolean => item.type === "plugin" || item.type === "mcpServer";
const own = (item: Customization): boolean => (scoped(item) ? (item.enablement?.[0]?.enabled ?? true) : (item.enabled ?? true));

/** On or off, and which decision makes it so. */
export function effective(item: Customization, parent: Customization | undefined): { on: boolean; why: string } {
  if (parent && !own(parent)) return { on: false, why: `off because ${parent.name} is off` };
  const said = item._meta?.["ahpkit/enablement"] as { reason?: string; effective?: boolean } | undefined;
  if (said?.reason) return { on: said.effective ?? own(item), why: said.reason };
  const decision = item.enablement?.[0];
  if (decision) return { on: decision.enabled, why: `${decision.enabled ? "on" : "off"} for ${SCOPES[decision.kind] ?? decision.kind}` };
  if (item.enabled !== undefined) return { on: item.enabled, why: item.enabled ? "on" : "switched off" };
  return { on: true, why: "on by default" };
}

/** A decision of one scope, with those of the others kept, the narrowest first. */
export function decided(item: Customization, kind: Enablement["kind"], enabled: boolean, workspace: string | undefined): Enablement[] {
  const order = ["session", "workspace", "global"];
  const others = (item.enablement ?? []).filter((each) => each.kind !== kind);
  const mine: Enablement = kind === "workspace" ? { kind, uri: workspace ?? "", enabled } : { kind, enabled };
  return [...others, mine].sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind));
}

function Item({ uri, session, item, parent }: { uri: string; session: SessionState; item: Customization; parent: Customization | undefined }): JSX.Element {
  const [scope, setScope] = useState<Enablement["kind"]>("session");
  const { on, why } = effective(item, parent);
  const toggle = (enabled: boolean): void => {
    const enablement = decided(item, scope, enabled, session.workingDirectories?.[0]);
    void dispatch(uri, { type: "session/customizationToggled", id: item.id, enablement }, "session").then((outcome) => outcome.accepted || tellRefused(outcome.reason));
  };
  const who = [item.disableModelInvocation ? "not by the model" : "", item.disableUserInvocation ? "not by you" : ""].filter(Boolean).join(", ");
  const load = item.load;
  const from = item.clientId ? "a connected client" : pathOf(item.uri);
  return (
    <li>
      <div class="tree-row top">
        <label class="switch"><input type="checkbox" role="switch" checked={on} disabled={parent !== undefined && !own(parent)} aria-label={`${item.name}: ${on ? "on" : "off"}`} onChange={(event) => toggle(event.currentTarget.checked)} /></label>
        <div class="grow">
          <div class="row wrap" style={{ gap: "4px 8px" }}>
            <strong class="break">{item.name}</strong><span class="chip">{KINDS[item.type] ?? item.type}</span>
            {item.version && <span class="muted small">{item.version}</span>}
            {load?.kind === "loading" && <span class="chip">Loading</span>}
            {load?.kind === "degraded" && <span class="chip needs">Partly loaded</span>}
            {load?.kind === "error" && <span class="chip danger">Not loaded</span>}
            {item.type === "mcpServer" && <ServerState item={item} />}
          </div>
          {item.description && <p class="small muted break">{item.description}</p>}
          <p class="small muted break">{why}{who ? ` · may be used ${who}` : ""}{item.alwaysApply ? " · always applies" : ""}{item.globs?.length ? ` · for ${item.globs.join(", ")}` : ""}</p>
          {load?.message && <p class={`small break ${load.kind === "error" ? "danger" : "needs"}`}>{load.message}</p>}
          <Diagnostics item={item} />
          {item.type === "mcpServer" && <ServerTools uri={uri} item={item} />}
          {!parent && <p class="small muted cut" title={from}>From {from}</p>}
          {scoped(item) && (
            <label class="row small muted">The switch counts for
              <select class="inline" value={scope} onChange={(event) => setScope(event.currentTarget.value as Enablement["kind"])}>
                {Object.entries(SCOPES).map(([kind, words]) => <option key={kind} value={kind}>{words}</option>)}
              </select>
            </label>
          )}
        </div>
      </div>
      {item.children && item.children.length > 0 && (
        <details class="fold"><summary>{item.children.length} inside</summary>
          <ul class="tree">{item.children.map((child) => <Item key={child.id} uri={uri} session={session} item={child} parent={item} />)}</ul>
        </details>
      )}
    </li>
  );
}

interface Diagnostic {
  message?: string;
  severity?: string;
  uri?: string;
  path?: string;
}

function Diagnostics({ item }: { item: Customization }): JSX.Element | null {
  const found = (item._meta?.["ahpkit/diagnostics"] ?? []) as Diagnostic[];
  if (!Array.isArray(found) || !found.length) return null;
  return <ul class="small" style={{ paddingInlineStart: "16px" }}>{found.slice(0, 20).map((each, index) => <li key={index} class={`break ${each.severity === "error" ? "danger" : "needs"}`}>{String(each.message ?? "")}{each.uri || each.path ? ` (${nameOf(String(each.uri ?? each.path))})` : ""}</li>)}</ul>;
}

const STATES: Record<string, [string, "needs" | "failed" | "running" | "done"]> = { starting: ["Starting", "running"], ready: ["Connected", "done"], authRequired: ["Needs a sign-in", "needs"], error: ["Failed", "failed"], stopped: ["Stopped", "done"] };

function ServerState({ item }: { item: Customization }): JSX.Element {
  const [words, mark] = STATES[item.state?.kind ?? ""] ?? ["Unknown", "done"];
  return <span class={`chip ${mark === "needs" ? "needs" : mark === "failed" ? "danger" : ""}`}><Mark of={mark} />{words}</span>;
}

interface ServerFacts {
  tools?: { name: string; description?: string }[] | number;
  log?: string[];
}

function ServerTools({ uri, item }: { uri: string; item: Customization }): JSX.Element {
  const [log, setLog] = useState<string[] | undefined>(undefined);
  const [tools, setTools] = useState<{ name: string; description?: string }[] | undefined>(undefined);
  const state = item.state;
  const facts = (item._meta?.["ahpkit/mcp"] ?? {}) as ServerFacts;
  const known = Array.isArray(facts.tools) ? facts.tools : tools;
  const act = (type: string): void => void dispatch(uri, { type, id: item.id }, "session").then((outcome) => outcome.accepted || tellRefused(outcome.reason));
  const list = (): void => void request<{ tools: { name: string; description?: string }[] }>("tools/list", { channel: item.channel }).then((answer) => setTools(answer.tools), (error: Error) => tellRefused(error.message));
  const readLog = (): void => void request<{ lines: string[] }>("_ahpkit/mcp/log", { channel: uri, id: item.id }).then((answer) => setLog(answer.lines), () => setLog(facts.log ?? ["This host keeps no log of it."]));
  return (
    <div class="stack" style={{ gap: "4px" }}>
      {state?.kind === "error" && <p class="small danger break">{state.error.message}</p>}
      {state?.kind === "authRequired" && <SignIn auth={state} />}
      <div class="row wrap">
        {(state?.kind === "stopped" || state?.kind === "error") && <button type="button" class="btn quiet" onClick={() => act("session/mcpServerStartRequested")}>{state.kind === "error" ? "Reconnect" : "Start"}</button>}
        {(state?.kind === "ready" || state?.kind === "starting" || state?.kind === "authRequired") && <button type="button" class="btn quiet" onClick={() => act("session/mcpServerStopRequested")}>Stop</button>}
        {state?.kind === "starting" && state.blocking && <button type="button" class="btn quiet" onClick={() => act("session/mcpServerBackgroundRequested")}>Do not wait for it</button>}
        {state?.kind === "ready" && item.channel && !known && <button type="button" class="btn quiet" onClick={list}>Tools</button>}
        <button type="button" class="btn quiet" onClick={readLog}>Log</button>
      </div>
      {known && <p class="small muted break">{known.length} {known.length === 1 ? "tool" : "tools"}: {known.map((tool) => tool.name).join(", ")}</p>}
      {log && <pre class="output">{log.join("\n")}</pre>}
    </div>
  );
}

export default function Setup({ uri, session }: PanelProps): JSX.Element {
  const all = session.customizations ?? [];
  const servers = all.filter((item) => item.type === "mcpServer");
  const others = all.filter((item) => item.type !== "mcpServer");
  return (
    <div class="pane-body" tabIndex={0} role="region" aria-label="Customizations and servers">
      <div class="side-body">
        <h2>MCP servers</h2>
        {servers.length ? <ul class="tree">{servers.map((item) => <Item key={item.id} uri={uri} session={session} item={item} parent={undefined} />)}</ul> : <p class="small muted">None of its own. Plugins may bring some.</p>}
        <h2>Customizations</h2>
        {others.length ? <ul class="tree">{others.map((item) => <Item key={item.id} uri={uri} session={session} item={item} parent={undefined} />)}</ul> : <p class="small muted">No plugins or directories were found.</p>}
        <h2>Tools</h2>
        <p class="small muted break">{session.serverTools?.length ? session.serverTools.map((tool) => tool.title ?? tool.name).join(", ") : "The agent brings its own."}</p>
      </div>
    </div>
  );
}
