/** A sign-in that an agent or a server asks for: where to get a token, and a field that forgets it at once. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { type AuthRequirement, ROOT } from "../ahp/index.ts";
import { request, signIns } from "../mirror/store.ts";
import { toast } from "../ui/bits.tsx";

const WHY = { required: "It has to know who you are.", expired: "The last sign-in has expired.", insufficientScope: "It needs further permissions." };

export function SignIn({ auth, onCancel }: { auth: AuthRequirement | undefined; server?: { session: string; id: string }; onCancel?: () => void }): JSX.Element | null {
  const [token, set] = useState("");
  const [error, fail] = useState("");
  if (!auth) return null;
  const resource = auth.resource;
  const places = [...(resource.authorization_servers ?? []), resource.resource_documentation ?? ""].filter((url) => /^https:\/\//.test(url));
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    try {
      await request("authenticate", { channel: ROOT, resource: resource.resource, token, ...(auth.requiredScopes ? { scopes: auth.requiredScopes } : {}) });
      signIns.value = signIns.value.filter((each) => each.resource !== resource.resource);
      toast("Signed in");
    } catch (problem) {
      fail((problem as Error).message);
    }
    set("");
  };
  return (
    <form class="stack" onSubmit={(event) => void submit(event)}>
      <p class="small break">
        {resource.resource_name ?? resource.resource}: {auth.description ?? WHY[auth.reason] ?? ""}
        {auth.requiredScopes?.length ? ` Permissions: ${auth.requiredScopes.join(", ")}.` : ""}
      </p>
      {places.map((url) => <a key={url} class="small break" href={url} target="_blank" rel="noopener noreferrer">{url}</a>)}
      <label class="field"><span>Access token</span>
        <input type="password" autocomplete="off" value={token} onInput={(event) => set(event.currentTarget.value)} />
      </label>
      {error && <p class="note danger" role="alert">{error}</p>}
      <div class="row">
        <button type="submit" class="btn primary" disabled={!token}>Sign in</button>
        {onCancel && <button type="button" class="btn" onClick={onCancel}>Do not sign in</button>}
      </div>
    </form>
  );
}
