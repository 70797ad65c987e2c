/** Settings of this browser: theme, keys, notifications. It also shows what the host is, for questions to the people who run it. */

import type { JSX } from "preact";
import { ask, possible, test, WHY } from "../local/notifications.ts";
import { me, RIGHTS } from "../local/me.ts";
import { notifyMe, sendWith, theme } from "../local/settings.ts";
import { hostInfo } from "../mirror/store.ts";

function Choice<T extends string>({ name, label, value, options, onChange }: { name: string; label: string; value: T; options: [T, string][]; onChange(value: T): void }): JSX.Element {
  return (
    <fieldset class="question" style={{ margin: 0 }}><legend>{label}</legend>
      {options.map(([each, words]) => <label key={each} class="check"><input type="radio" name={name} checked={value === each} onChange={() => onChange(each)} />{words}</label>)}
    </fieldset>
  );
}

export default function SettingsView(): JSX.Element {
  const can = possible.value;
  const host = hostInfo.value;
  const version = (host?._meta?.["ahpkit/host"] as { version?: string } | undefined)?.version;
  return (
    <div class="pane-body"><div class="page narrow">
      <h1>Settings</h1>
      <p class="small muted">Kept in this browser only.</p>
      <Choice name="theme" label="Theme" value={theme.value} onChange={(value) => (theme.value = value)} options={[["system", "As the system"], ["light", "Light"], ["dark", "Dark"]]} />
      <Choice name="send" label="Send with" value={sendWith.value} onChange={(value) => (sendWith.value = value)} options={[["enter", "Enter (Shift+Enter for a new line)"], ["ctrl-enter", "Ctrl+Enter or ⌘+Enter"]]} />
      <section class="stack" aria-label="Notifications">
        <h2>Notifications</h2>
        <p class="small">When an agent needs you, fails, or finishes after more than 30 seconds. Never with code in the text. They come while this page is open, here or in the background.</p>
        <p class="note" data-state={can}>{WHY[can]}</p>
        <div class="row wrap">
          {can === "ask" && <button type="button" class="btn primary" onClick={() => void ask()}>Allow notifications</button>}
          {can === "allowed" && <label class="check"><input type="checkbox" checked={notifyMe.value} onChange={(event) => (notifyMe.value = event.currentTarget.checked)} />Notify me in this browser</label>}
          {can === "allowed" && <button type="button" class="btn" onClick={() => void test()}>Send test</button>}
        </div>
        <p class="small muted">For everything else, the host can call a webhook or a command: see <code>[notify]</code> in its settings.</p>
      </section>
      <section class="stack" aria-label="Host">
        <h2>Host</h2>
        <p class="small muted break">{host?.serverInfo?.title ?? host?.serverInfo?.name ?? "ahpkit"} {host?.serverInfo?.version ?? version ?? ""} · AHP {host?.protocolVersion}</p>
        {me.value && <p class="small muted">The right of this browser: {RIGHTS[me.value.right]}.</p>}
      </section>
    </div></div>
  );
}
