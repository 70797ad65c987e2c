/** A sign-in that an agent or a server asks for: in the browser if the host supports it, otherwise with a field for a token, which is not kept. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { type AuthRequirement, ROOT } from "../ahp/index.ts";
import { beginSignIn, mayWrite, onlyWords } from "../local/me.ts";
import { request, signIns } from "../mirror/store.ts";
import { toast } from "../ui/bits.tsx";

const WHY = { required: "It has to know who you are.", expired: "The last sign-in has expired.", insufficientScope: "It needs further permissions." };

/** An MCP server of a session, which the host can sign in to. */
export interface SignInServer {
  session: string;
  id: string;
}

interface Props {
  auth: AuthRequirement | undefined;
  server?: SignInServer | undefined;
  onCancel?: () => void;
}

const isSafe = (url: string): boolean => /^(https:|http:\/\/(127\.0\.0\.1|localhost|\[::1\])[:/])/.test(url);

export function SignIn({ auth, server, onCancel }: Props): JSX.Element | null {
  const [address, lead] = useState<string | undefined>(undefined);
  const [busy, setBusy] = useState(false);
  const [error, fail] = useState("");
  if (!auth) return null;
  const resource = auth.resource;
  const inBrowser = server !== undefined && mayWrite() && (resource.authorization_servers?.length ?? 0) > 0;
  const begin = (): void => {
    setBusy(true);
    fail("");
    beginSignIn(server?.session ?? "", server?.id ?? "").then(({ url }) => {
      if (!isSafe(url)) return fail("The place to sign in has no address that can be trusted.");
      lead(url);
      window.open(url, "_blank", "noopener");
    }, (problem: Error) => fail(problem.message)).finally(() => setBusy(false));
  };
  return (
    <div class="stack" style={{ gap: "8px" }}>
      <p class="small break">
        <strong>{resource.resource_name ?? resource.resource}</strong>: {auth.description ?? WHY[auth.reason] ?? ""}
        {auth.requiredScopes?.length ? ` Permissions: ${auth.requiredScopes.join(", ")}.` : ""}
      </p>
      <div class="row wrap">
        {inBrowser && <button type="button" class="btn primary" disabled={busy} onClick={begin}>{busy ? "One moment…" : "Sign in"}</button>}
        {onCancel && mayWrite() && <button type="button" class="btn" onClick={onCancel}>Do not sign in</button>}
      </div>
      {address && <p class="small break">A tab has opened; this goes on by itself when you are done there. No tab? <a href={address} target="_blank" rel="noopener noreferrer">Open it here.</a></p>}
      {error && <p class="note danger break" role="alert">{error}</p>}
      {mayWrite() ? <details class="fold" open={!inBrowser}><summary>{inBrowser ? "Or give a token" : "Give a token"}</summary><TokenForm auth={auth} /></details> : <p class="small muted">{onlyWords()}</p>}
    </div>
  );
}

function TokenForm({ auth }: { auth: AuthRequirement }): JSX.Element {
  const [token, set] = useState("");
  const [error, fail] = useState("");
  const resource = auth.resource;
  const places = [...(resource.authorization_servers ?? []), resource.resource_documentation ?? ""].filter((url) => /^https:\/\//.test(url));
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    try {
      await request("authenticate", { channel: ROOT, resource: resource.resource, token, ...(auth.requiredScopes ? { scopes: auth.requiredScopes } : {}), _meta: { "ahpkit/keep-token": true } });
      signIns.value = signIns.value.filter((each) => each.resource !== resource.resource);
      toast("Signed in");
    } catch (problem) {
      fail((problem as Error).message);
    }
    set("");
  };
  return (
    <form class="stack" style={{ gap: "8px", paddingTop: "8px" }} onSubmit={(event) => void submit(event)}>
      {places.map((url) => <a key={url} class="small break" href={url} target="_blank" rel="noopener noreferrer">{url}</a>)}
      <label class="field"><span>Access token</span>
        <input type="password" autocomplete="off" value={token} onInput={(event) => set(event.currentTarget.value)} />
      </label>
      {error && <p class="note danger break" role="alert">{error}</p>}
      <div><button type="submit" class="btn" disabled={!token}>Use this token</button></div>
    </form>
  );
}
