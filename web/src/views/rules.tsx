/** Approval rules and the record of decisions: what is allowed or denied without asking, and who decided about which call. Each rule can be removed. */

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ROOT, type SessionSummary } from "../ahp/index.ts";
import { mayWrite } from "../local/me.ts";
import { sessionUrl } from "../mirror/inbox.ts";
import { age, ago, pathOf, titleOf } from "../mirror/selectors.ts";
import { clientId, link, request, sessions } from "../mirror/store.ts";
import { Mark, tellRefused, toast, useNow } from "../ui/bits.tsx";

export interface Rule {
  id: string;
  decision: string;
  scope: string;
  /** Whose tool: `agent:NAME`, `mcp:SERVER`, `client:NAME`, `host`. */
  owner?: string;
  /** The rule in words, as the host understands it. */
  says?: string;
  tool?: string;
  place?: string;
  createdAt?: number;
  createdBy?: string;
  /** The rule is in the host's settings, and can only be removed there. */
  configured?: boolean;
}

interface Decision {
  at: number;
  session: string;
  chat?: string;
  tool: string;
  owner?: string;
  decision: string;
  by?: string;
  who?: string;
  option?: string;
  reason?: string;
  shown?: { title?: string; message?: string; input?: string };
}

const OWNERS: Record<string, string> = { agent: "agent", mcp: "MCP server", client: "client" };

/** "MCP server calc", "agent coder". */
export function ownerWords(owner: string | undefined): string {
  const [kind = "", name] = (owner ?? "").split(":");
  return name ? `${OWNERS[kind] ?? kind} ${name}` : kind === "host" ? "the host" : "";
}

/** The scope of a rule in words, with the name of the session or directory. */
export function placeWords(rule: Rule, known: ReadonlyMap<string, SessionSummary>): string {
  if (rule.scope === "workspace") return `in ${rule.place ? pathOf(rule.place) : "one directory"}`;
  if (rule.scope !== "session" && rule.scope !== "chat") return rule.scope;
  const summary = [...known.values()].find((each) => each.resource === rule.place || each.defaultChat === rule.place || each.chats?.some((chat) => chat.resource === rule.place));
  if (!summary) return `in a ${rule.scope} that is gone`;
  const title = `“${titleOf(summary)}”`;
  return rule.scope === "session" ? `in the session ${title}` : `in a chat of ${title}`;
}

const sayWhat = (rule: Rule): string =>
  (rule.says ?? `Always ${rule.decision} ${rule.tool ?? "every tool"}`).replace(/ (in this (chat|session|workspace)|everywhere)$/, "");

function RuleRow({ rule, at, onTake }: { rule: Rule; at: number; onTake(): void }): JSX.Element {
  const owner = ownerWords(rule.owner);
  const facts = [owner && `Tool of ${owner}`, rule.createdAt ? `made ${ago(new Date(rule.createdAt).toISOString(), at)}` : "", rule.configured ? "set in the host's settings; remove it there" : ""];
  return (
    <li class="tree-row card">
      <Mark of={rule.decision === "deny" ? "failed" : "done"} />
      <div class="grow"><strong class="break">{sayWhat(rule)}</strong> <span class="break">{placeWords(rule, sessions.value)}</span>
        <p class="small muted break">{facts.filter(Boolean).join(" · ")}</p>
      </div>
      {!rule.configured && mayWrite() && <button type="button" class="btn" onClick={onTake}>Take back</button>}
    </li>
  );
}

const BY: Record<string, string> = { guard: "by a hook or a switch", setting: "by the agent's settings", agent: "by the agent itself", default: "without asking", person: "by a person", client: "by a program, without asking", rule: "by a rule" };

function decider(decision: Decision, rules: Rule[]): string {
  if (decision.by === "person") return decision.who === clientId ? "by you, in this window" : BY.person as string;
  const rule = decision.by === "rule" ? rules.find((each) => each.id === decision.who) : undefined;
  return rule ? `by the rule “${sayWhat(rule)}”` : (BY[decision.by ?? ""] ?? decision.by ?? "");
}

function DecisionRow({ decision, rules, at }: { decision: Decision; rules: Rule[]; at: number }): JSX.Element {
  const session = sessions.value.get(decision.session);
  const owner = ownerWords(decision.owner);
  const input = decision.shown?.input;
  return (
    <li class="decision">
      <Mark of={decision.decision === "denied" ? "failed" : "done"} />
      <div class="stack" style={{ gap: "2px" }}>
        <div class="row wrap" style={{ gap: "0 8px" }}><strong class="break">{decision.shown?.title || decision.tool}</strong><span>{decision.decision}</span><span class="muted">{decider(decision, rules)}</span></div>
        <p class="small muted break">
          {owner ? `${decision.tool} of ${owner}` : decision.tool}{session ? <> · <a href={sessionUrl(decision.session, decision.chat)}>{titleOf(session)}</a></> : ""} · <span title={new Date(decision.at).toLocaleString()}>{age(new Date(decision.at).toISOString(), at)}</span>
          {decision.reason ? ` · ${decision.reason}` : ""}
        </p>
        {input && <details class="fold"><summary>Input</summary><pre class="payload">{input}</pre></details>}
      </div>
    </li>
  );
}

/** JSON-RPC: the host does not know the method. */
const NO_METHOD = -32601;

export default function RulesView(): JSX.Element {
  const at = useNow(30_000);
  const [rules, set] = useState<Rule[] | undefined>(undefined);
  const [missing, miss] = useState("");
  const [decisions, record] = useState<Decision[]>([]);
  const load = (): void => void request<{ rules: Rule[] }>("_ahpkit/rules/list", { channel: ROOT }).then((answer) => set(answer.rules), (error: Error & { code?: number }) => miss(error.code === NO_METHOD ? "This host remembers no approvals." : error.message));
  useEffect(() => {
    load();
    void request<{ approvals: Decision[] }>("_ahpkit/approvals/list", { channel: ROOT, limit: 100 }).then((answer) => record(answer.approvals.toReversed()), () => undefined);
  }, []);
  const take = (rule: Rule): void => {
    void request("_ahpkit/rules/remove", { channel: ROOT, id: rule.id }).then(() => {
      toast("Taken back. The next such call asks again.");
      load();
    }, (error: Error) => tellRefused(error.message));
  };
  return (
    <div class="pane-body"><div class="page">
      <div class="stack" style={{ gap: "4px" }}>
        <h1>Approval rules</h1>
        <p class="muted">What runs, or does not, without asking. You make a rule with “Always…” when a call waits.</p>
      </div>
      {missing && <p class="empty">{missing}</p>}
      {rules?.length === 0 && <p class="empty">Nothing is remembered. Every call asks, unless its agent decides otherwise.</p>}
      {rules && rules.length > 0 && <ul class="tree" style={{ gap: "8px" }}>{rules.map((rule) => <RuleRow key={rule.id} rule={rule} at={at} onTake={() => take(rule)} />)}</ul>}
      {!missing && !rules && <p class="empty">{link.value === "offline" ? "The host cannot be reached." : "Loading…"}</p>}
      {rules && (
        <section class="stack">
          <h2>Decided lately</h2>
          {decisions.length ? <ul class="decisions">{decisions.map((each, index) => <DecisionRow key={index} decision={each} rules={rules} at={at} />)}</ul> : <p class="small muted">No call has been decided yet.</p>}
        </section>
      )}
    </div></div>
  );
}
