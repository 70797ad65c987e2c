/** Approval rules that were remembered: what they allow, for whom, since when; and a way to take each back. */

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ROOT } from "../ahp/index.ts";
import { request } from "../mirror/store.ts";
import { tellRefused, toast } from "../ui/bits.tsx";

interface Rule {
  id: string;
  decision: string;
  scope: string;
  /** The rule in words, as the host reads it. */
  says?: string;
  tool?: string;
  place?: string;
  createdAt?: number;
  createdBy?: string;
  /** It stands in the host's settings and is taken out there. */
  configured?: boolean;
}

interface Decision {
  at: number;
  session: string;
  tool: string;
  decision?: string;
  outcome?: string;
  by?: string;
  [field: string]: unknown;
}

const words = (rule: Rule): string => rule.says ?? `${rule.decision} ${rule.tool ?? "every tool"} (${rule.scope})`;
const when = (at: number | undefined): string => (at ? new Date(at).toLocaleString() : "");

export default function RulesView(): JSX.Element {
  const [rules, set] = useState<Rule[] | undefined>(undefined);
  const [missing, miss] = useState(false);
  const [decisions, record] = useState<Decision[]>([]);
  const load = (): void => void request<{ rules: Rule[] }>("_ahpkit/rules/list", { channel: ROOT }).then((answer) => set(answer.rules), () => miss(true));
  useEffect(() => {
    load();
    void request<{ approvals: Decision[] }>("_ahpkit/approvals/list", { channel: ROOT, limit: 50 }).then((answer) => record(answer.approvals.toReversed()), () => undefined);
  }, []);
  const take = (rule: Rule): void => {
    void request("_ahpkit/rules/remove", { channel: ROOT, id: rule.id }).then(() => {
      toast("Taken back. The next such call asks again.");
      load();
    }, (error: Error) => tellRefused(error.message));
  };
  return (
    <div class="pane-body"><div class="page">
      <h1>Approval rules</h1>
      <p class="muted">An answer to an approval can be remembered. Here is what was, and each can be taken back.</p>
      {missing && <p class="empty">This host remembers no approvals.</p>}
      {rules?.length === 0 && <p class="empty">Nothing is remembered. Every call asks, unless its agent decides otherwise.</p>}
      {rules && rules.length > 0 && (
        <ul class="tree">{rules.map((rule) => (
          <li key={rule.id} class="tree-row card">
            <div class="grow"><strong class="break">{words(rule)}</strong><p class="small muted break">{[rule.place, rule.createdAt ? `since ${when(rule.createdAt)}` : "", rule.configured ? "from the host's settings: take it out there" : ""].filter(Boolean).join(" · ")}</p></div>
            {!rule.configured && <button type="button" class="btn" onClick={() => take(rule)}>Take back</button>}
          </li>
        ))}</ul>
      )}
      {decisions.length > 0 && (
        <>
          <h2>Decided lately</h2>
          <table><thead><tr><th>When</th><th>Tool</th><th>Decision</th><th>By</th></tr></thead>
            <tbody>{decisions.map((each, index) => <tr key={index}><td>{when(each.at)}</td><td class="break">{each.tool}</td><td>{String(each.decision ?? each.outcome ?? "")}</td><td>{each.by}</td></tr>)}</tbody>
          </table>
        </>
      )}
    </div></div>
  );
}
