/** Approval rules that were remembered: what they allow, for whom, since when; and a way to take each back. */

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ROOT } from "../ahp/index.ts";
import { request } from "../mirror/store.ts";
import { tellRefused, toast } from "../ui/bits.tsx";

interface Rule {
  id: string;
  /** allow or deny */
  decision?: string;
  effect?: string;
  tool?: string;
  description?: string;
  scope?: string | { kind?: string; uri?: string };
  createdAt?: string;
}

const words = (rule: Rule): string => rule.description ?? `${rule.decision ?? rule.effect ?? "allow"} ${rule.tool ?? "every tool"}`;
const scopeOf = (rule: Rule): string => (typeof rule.scope === "string" ? rule.scope : [rule.scope?.kind, rule.scope?.uri].filter(Boolean).join(" "));

export default function RulesView(): JSX.Element {
  const [rules, set] = useState<Rule[] | undefined>(undefined);
  const [missing, miss] = useState(false);
  const load = (): void => void request<{ rules: Rule[] }>("_ahpkit/rules/list", { channel: ROOT }).then((answer) => set(answer.rules), () => miss(true));
  useEffect(load, []);
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
            <div class="grow"><strong class="break">{words(rule)}</strong><p class="small muted break">{scopeOf(rule)}{rule.createdAt ? ` · since ${new Date(rule.createdAt).toLocaleString()}` : ""}</p></div>
            <button type="button" class="btn" onClick={() => take(rule)}>Take back</button>
          </li>
        ))}</ul>
      )}
    </div></div>
  );
}
