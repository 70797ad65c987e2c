/** Customizations and MCP servers of a session: what is loaded, from where, on or off and why, and who may use it. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Customization, Enablement, SessionState } from "../ahp/index.ts";
import { mayWrite } from "../local/me.ts";
import { customizationsOf, pathOf, toUri } from "../mirror/selectors.ts";
import { request, root } from "../mirror/store.ts";
import { act, focusNow, Mark, Menu, tellRefused, toast } from "../ui/bits.tsx";
import type { PanelProps } from "./session.tsx";
import { SignIn } from "./signin.tsx";

const KINDS: Record<string, string> = { plugin: "Plugin", directory: "Directory", agent: "Agent", skill: "Skill", prompt: "Prompt", rule: "Rule", hook: "Hook", mcpServer: "MCP server" };
const SCOPES: Record<Enablement["kind"], string> = { session: "in this session", workspace: "in this directory", global: "everywhere" };
const TRUST: Record<string, string> = {
  unknown: "It does not run: nobody has trusted it yet. Run ahpkit trust add.",
  changed: "It does not run: it changed since it was trusted. Run ahpkit trust add.",
};

const own = (item: Customization): boolean => item.enablement?.[0]?.enabled ?? item.enabled ?? true;

/** Whether it is on or off, and which decision made it so. */
export function effective(item: Customization, parent: Customization | undefined): { on: boolean; why: string } {
  if (parent && !own(parent)) return { on: false, why: `Off because ${parent.name} is off.` };
  const on = own(item);
  const said = item._meta?.["ahpkit/enablement"] as { reason?: string; effective?: boolean } | undefined;
  if (said?.reason && said.effective === on) return { on, why: `${said.reason.charAt(0).toUpperCase()}${said.reason.slice(1)}.` };
  const decision = item.enablement?.[0];
  if (decision) return { on, why: `Switched ${on ? "on" : "off"} ${SCOPES[decision.kind] ?? decision.kind}.` };
  return { on, why: on ? "On: nobody switched it off." : "Switched off." };
}

/** The decisions with one scope's replaced and the others kept, the narrowest first. */
export function decided(item: Customization, kind: Enablement["kind"], enabled: boolean, workspace: string | undefined): Enablement[] {
  const order = ["session", "workspace", "global"];
  const others = (item.enablement ?? []).filter((each) => each.kind !== kind);
  const mine: Enablement = kind === "workspace" ? { kind, uri: workspace ?? "", enabled } : { kind, enabled };
  return [...others, mine].sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind));
}

/** The origin of a customization, in words. */
export function sourceOf(item: Customization, parent: Customization | undefined): string {
  if (item.clientId ?? parent?.clientId) return "from a connected client";
  if (parent?.type === "plugin") return `from the plugin ${parent.name}`;
  if (parent) return `from ${parent.name}`;
  return item.uri.startsWith("file:") ? `from ${pathOf(item.uri)}` : "from the host's settings";
}

interface ItemProps {
  uri: string;
  session: SessionState;
  item: Customization;
  parent: Customization | undefined;
}

const toggle = ({ uri, session, item }: ItemProps, scope: Enablement["kind"], enabled: boolean): void =>
  void act(uri, { type: "session/customizationToggled", id: item.id, enablement: decided(item, scope, enabled, session.workingDirectories?.[0]) }, "session");

/** The same switch for more than this session. A narrower scope decides, so each switch says which narrower decision overrides it. */
function Scopes(props: ItemProps): JSX.Element | null {
  const { item } = props;
  if (!mayWrite() || (item.type !== "plugin" && item.type !== "mcpServer")) return null;
  const scopes: Enablement["kind"][] = ["session", "workspace", "global"];
  const of = (scope: Enablement["kind"]): boolean | undefined => item.enablement?.find((each) => each.kind === scope)?.enabled;
  return (
    <Menu label={`Scopes of ${item.name}`} entries={scopes.map((scope) => {
      const next = !(of(scope) ?? own(item));
      const said = of(scope);
      return { label: `Switch ${next ? "on" : "off"} ${SCOPES[scope]}`, sub: said === undefined ? "Nothing is decided there yet" : `It is ${said ? "on" : "off"} there now`, run: () => toggle(props, scope, next) };
    })} />
  );
}

function Item(props: ItemProps): JSX.Element {
  const { uri, item, parent } = props;
  const { on, why } = effective(item, parent);
  const who = [item.disableModelInvocation ? "The model may not use it by itself." : "", item.disableUserInvocation ? "You cannot invoke it." : ""].filter(Boolean).join(" ");
  const load = item.load;
  const server = item.type === "mcpServer";
  const trust = TRUST[String(item._meta?.["ahpkit/trust"] ?? "")];
  const applies = `${item.alwaysApply ? " Always applies." : ""}${item.globs?.length ? ` For ${item.globs.join(", ")}.` : ""}`;
  return (
    <li class={`setup-item${on ? "" : " off"}`}>
      <input type="checkbox" role="switch" checked={on} disabled={!mayWrite() || (parent !== undefined && !own(parent))} aria-label={`${item.name}: ${on ? "on" : "off"}`} onChange={(event) => toggle(props, "session", event.currentTarget.checked)} />
      <div class="stack" style={{ gap: "4px" }}>
        <div class="row wrap" style={{ gap: "2px 8px" }}>
          <strong class="break">{item.name}</strong>
          {parent && !server && <span class="chip">{KINDS[item.type] ?? item.type}</span>}
          {item.version && <span class="muted small">{item.version}</span>}
          {load?.kind === "loading" && <span class="chip">Loading</span>}
          {load?.kind === "degraded" && <span class="chip needs">Partly loaded</span>}
          {load?.kind === "error" && <span class="chip danger">Not loaded</span>}
          {server && <ServerState item={item} />}
          <span class="grow" />
          <Scopes {...props} />
        </div>
        {item.description && <p class="small break">{item.description}</p>}
        <p class="small muted break">{!trust && why}{applies} {who} {(!parent || server) && `It comes ${sourceOf(item, parent)}.`}</p>
        {trust && <p class="note needs small break">{trust}</p>}
        {load?.message && <p class={`note small break ${load.kind === "error" ? "danger" : "needs"}`}>{load.message}</p>}
        <Unusable item={item} />
        {server && <Server uri={uri} item={item} running={!trust && on} />}
        {item.children && item.children.some((child) => child.type !== "mcpServer") && <Inside {...props} />}
      </div>
    </li>
  );
}

/** The content of a container. Its servers are listed above, with all others. */
function Inside({ uri, session, item }: ItemProps): JSX.Element {
  const children = (item.children ?? []).filter((child) => child.type !== "mcpServer");
  const [open, set] = useState(children.length <= 3);
  return (
    <details class="fold" open={open} onToggle={(event) => set(event.currentTarget.open)}>
      <summary>{counted(children)}</summary>
      {open && <ul class="setup">{children.map((child) => <Item key={child.id} uri={uri} session={session} item={child} parent={item} />)}</ul>}
    </details>
  );
}

/** "2 skills, 1 agent". */
function counted(items: Customization[]): string {
  const counts = new Map<string, number>();
  for (const item of items) counts.set(item.type, (counts.get(item.type) ?? 0) + 1);
  return [...counts].map(([type, count]) => `${count} ${(KINDS[type] ?? type).toLowerCase()}${count === 1 ? "" : "s"}`).join(", ");
}

/** What cannot be used, and why: components of a plugin that are not listed, tools of a server that are left out. */
export function unusable(item: Customization): string[] {
  const lines = item._meta?.["ahpkit/notListed"];
  const leftOut = Object.entries(item._meta?.["ahpkit/left-out"] ?? {});
  return [...(Array.isArray(lines) ? lines.map(String) : []), ...leftOut.map(([name, reason]) => `Without ${name}: ${String(reason)}`)];
}

function Unusable({ item }: { item: Customization }): JSX.Element | null {
  const found = unusable(item);
  if (!found.length) return null;
  return <ul class="small" style={{ paddingInlineStart: "16px" }}>{found.slice(0, 20).map((line, index) => <li key={index} class="break needs">{line}</li>)}</ul>;
}

const STATES: Record<string, [string, "needs" | "failed" | "running" | "done"]> = { starting: ["Starting", "running"], ready: ["Connected", "done"], authRequired: ["Needs a sign-in", "needs"], error: ["Failed", "failed"], stopped: ["Stopped", "done"] };

function ServerState({ item }: { item: Customization }): JSX.Element {
  const [words, mark] = STATES[item.state?.kind ?? ""] ?? ["Unknown", "done"];
  return <span class={`chip ${mark === "needs" ? "needs" : mark === "failed" ? "danger" : ""}`}>{item.state?.kind !== "stopped" && <Mark of={mark} />}{words}</span>;
}

interface McpTool {
  name: string;
  title?: string;
  description?: string;
}

/** A running server: start and stop it, see its tools and its log, sign in. */
function Server({ uri, item, running }: { uri: string; item: Customization; running: boolean }): JSX.Element {
  const [log, setLog] = useState<string[] | undefined>(undefined);
  const [tools, setTools] = useState<McpTool[] | undefined>(undefined);
  const state = item.state;
  const ask = (type: string): void => void act(uri, { type, id: item.id }, "session");
  const list = (): void => void request<{ tools: McpTool[] }>("tools/list", { channel: item.channel }).then((answer) => setTools(answer.tools), (error: Error) => tellRefused(error.message));
  const readLog = (): void => void request<{ lines: string[] }>("_ahpkit/mcp/log", { channel: uri, id: item.id }).then((answer) => setLog(answer.lines), (error: Error) => toast(`The log cannot be read: ${error.message}`));
  return (
    <>
      {state?.kind === "error" && <p class="note danger small break" style={{ whiteSpace: "pre-wrap" }}>{state.error.message}</p>}
      {state?.kind === "authRequired" && <SignIn auth={state} server={{ session: uri, id: item.id }} />}
      <div class="row wrap" style={{ gap: "4px" }}>
        {running && mayWrite() && (state?.kind === "stopped" || state?.kind === "error") && <button type="button" class="btn tiny" onClick={() => ask("session/mcpServerStartRequested")}>{state.kind === "error" ? "Try again" : "Start"}</button>}
        {mayWrite() && state?.kind === "ready" && item.channel && <button type="button" class="btn tiny" aria-expanded={tools !== undefined} onClick={() => (tools ? setTools(undefined) : list())}>Tools</button>}
        {mayWrite() && state && <button type="button" class="btn tiny" aria-expanded={log !== undefined} onClick={() => (log ? setLog(undefined) : readLog())}>Log</button>}
        {mayWrite() && (state?.kind === "ready" || state?.kind === "starting" || state?.kind === "authRequired") && <button type="button" class="btn tiny" onClick={() => ask("session/mcpServerStopRequested")}>Stop</button>}
        {state?.kind === "starting" && state.blocking && mayWrite() && <button type="button" class="btn tiny" onClick={() => ask("session/mcpServerBackgroundRequested")}>Do not wait for it</button>}
      </div>
      {tools && (
        <ul class="tools" aria-label={`Tools of ${item.name}`}>
          {tools.map((tool) => <li key={tool.name} class="break"><code>{tool.name}</code>{tool.description ? <span class="muted"> {tool.description}</span> : null}</li>)}
          {!tools.length && <li class="muted">It has no tools.</li>}
        </ul>
      )}
      {log && <pre class="output" tabIndex={0} role="region" aria-label={`Log of ${item.name}`}>{log.join("\n") || "The log is empty."}</pre>}
    </>
  );
}

/** Where the session works. If the agent can work in several directories, they can be added and removed here. */
function Directories({ uri, session }: { uri: string; session: SessionState }): JSX.Element {
  const [adding, add] = useState<string | undefined>(undefined);
  const able = root.value?.agents.find((each) => each.provider === session.provider)?.capabilities?.multipleWorkingDirectories;
  const directories = session.workingDirectories ?? [];
  const change = (type: string, directory: string): void => void act(uri, { type, directory }, "session");
  const fixed = (index: number): boolean => !able || (index === 0 && Boolean(able.immutablePrimary || able.primaryReplacement)) || directories.length < 2;
  return (
    <section class="stack" style={{ gap: "8px" }}>
      <h2>{directories.length > 1 ? "Directories" : "Directory"}</h2>
      {session.config?.values.isolation === "worktree" && <p class="small muted">A git work tree on a branch of its own. The folder that it was made from stays as it is.</p>}
      <ul class="tools">{directories.map((directory, index) => (
        <li key={directory} class="row"><code class="break grow">{pathOf(directory)}</code>
          {!fixed(index) && mayWrite() && <button type="button" class="btn tiny" aria-label={`Remove ${pathOf(directory)}`} onClick={() => change("session/workingDirectoryRemoved", directory)}>Remove</button>}
        </li>
      ))}</ul>
      {able && mayWrite() && (adding === undefined ? <div><button type="button" class="btn tiny" onClick={() => add("")}>Add a directory</button></div> : (
        <form class="row" onSubmit={(event) => {
          event.preventDefault();
          change("session/workingDirectorySet", toUri(adding.trim()));
          add(undefined);
        }}>
          <input class="mono" aria-label="Directory to add" placeholder="/path/to/it" ref={focusNow} spellcheck={false} value={adding} onInput={(event) => add(event.currentTarget.value)} />
          <button type="submit" class="btn" disabled={!adding.trim()}>Add</button>
        </form>
      ))}
    </section>
  );
}

function Section({ title, none, children }: { title: string; none?: string; children: JSX.Element[] }): JSX.Element | null {
  if (!children.length && !none) return null;
  return (
    <section class="stack" style={{ gap: "8px" }}>
      <h2>{title}</h2>
      {children.length ? <ul class="setup">{children}</ul> : <p class="small muted">{none}</p>}
    </section>
  );
}

export default function Setup({ uri, session }: PanelProps): JSX.Element {
  const all = [...customizationsOf(session)];
  const item = (each: { item: Customization; parent: Customization | undefined }): JSX.Element => <Item key={each.item.id} uri={uri} session={session} {...each} />;
  const top = all.filter((each) => !each.parent && each.item.type !== "mcpServer");
  const holds = (each: { item: Customization }): boolean => (each.item.children ?? []).some((child) => child.type !== "mcpServer");
  const spoken = (each: { item: Customization }): boolean => holds(each) || each.item.type === "plugin" || (each.item.load !== undefined && each.item.load.kind !== "loaded") || !own(each.item);
  const silent = top.filter((each) => !spoken(each) && !each.item.children?.length);
  const tools = session.serverTools ?? [];
  return (
    <div class="pane-body" tabIndex={0} role="region" aria-label="Customizations and servers">
      <div class="side-body" style={{ gap: "24px" }}>
        <Directories uri={uri} session={session} />
        <Section title="MCP servers" none="There are none.">{all.filter((each) => each.item.type === "mcpServer").map(item)}</Section>
        <Section title="Plugins">{top.filter((each) => each.item.type === "plugin").map(item)}</Section>
        <Section title="Files and directories">{top.filter((each) => each.item.type !== "plugin" && spoken(each)).map(item)}</Section>
        {silent.length > 0 && <p class="small muted break">Also looked into, and empty: {silent.map((each) => each.item.name).join(", ")}.</p>}
        {!top.length && <p class="small muted">No plugins or directories were found.</p>}
        <section class="stack" style={{ gap: "8px" }}>
          <h2>Tools of the host</h2>
          {tools.length ? <details class="fold"><summary>{tools.length} {tools.length === 1 ? "tool" : "tools"} for the agent, beside its own</summary>
            <ul class="tools folded">{tools.map((tool) => <li key={tool.name} class="break"><code>{tool.name}</code>{tool.description ? <span class="muted"> {tool.description}</span> : null}</li>)}</ul>
          </details> : <p class="small muted">The agent brings its own.</p>}
        </section>
      </div>
    </div>
  );
}
