/** What a browser sees that the host does not know: how to pair it. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { entry, signIn } from "../local/me.ts";

export default function EntryView(): JSX.Element {
  const [code, set] = useState("");
  const [error, fail] = useState(entry.value === "wrong-code" ? "This link was used already, or it has expired." : "");
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    try {
      await signIn(code.trim());
      location.replace("/");
    } catch (problem) {
      fail((problem as Error).message);
    }
  };
  return (
    <main class="page" style={{ maxWidth: "480px", alignContent: "center", minHeight: "100dvh" }}>
      <h1 class="row"><img src="/icon.svg" alt="" width="28" height="28" />ahpkit</h1>
      <p>This browser is not known to the host yet.</p>
      {error && <p class="note danger" role="alert">{error}</p>}
      <ul class="stack" style={{ paddingInlineStart: "20px" }}>
        <li>On the machine of the host, run <code>ahpkit open</code>. It opens this page with a fresh link.</li>
        <li>For a phone, run <code>ahpkit pair</code> there and scan the code.</li>
      </ul>
      <form class="stack" onSubmit={(event) => void submit(event)}>
        <label class="field"><span>Or type the code</span><input class="mono" placeholder="ABCDE-FGHJK" autocomplete="one-time-code" autocapitalize="characters" spellcheck={false} value={code} onInput={(event) => set(event.currentTarget.value)} /></label>
        <div><button type="submit" class="btn primary" disabled={!code.trim()}>Come in</button></div>
      </form>
    </main>
  );
}
