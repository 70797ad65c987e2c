/** Devices that may use the host: list them, revoke them, and pair another one with a QR code. */

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { type Device, devices, leave, mayWrite, me, onlyWords, pair, revoke, type Right, RIGHTS } from "../local/me.ts";
import { renderSVG } from "uqr";
import { ago } from "../mirror/selectors.ts";
import { confirmed, CopyButton, tellRefused, toast, useNow } from "../ui/bits.tsx";

/** The picture of the code, as an image so that nothing in it could ever run. */
function Qr({ text }: { text: string }): JSX.Element {
  const source = `data:image/svg+xml,${encodeURIComponent(renderSVG(text))}`;
  return <img class="qr" alt="QR code with a link for the other device" src={source} />;
}

function Pair({ onPaired }: { onPaired(): void }): JSX.Element {
  const [right, setRight] = useState<Right>("answer");
  const [name, setName] = useState("Phone");
  const [made, set] = useState<{ url: string; code: string; expiresAt: string } | undefined>(undefined);
  const possible = me.value?.pairing.possible ?? false;
  const submit = (event: Event): void => {
    event.preventDefault();
    pair(right, name).then((answer) => {
      set(answer);
      onPaired();
    }, (error: Error) => tellRefused(error.message));
  };
  if (!possible)
    return (
      <section class="stack"><h2>Pair a phone</h2>
        <p class="note break">{me.value?.pairing.reason ?? "Other devices cannot reach this host: it listens on this machine only."}</p>
        <p class="small muted">To change that, put this into the host's settings and start it again. Then a code to scan appears here.</p>
        <pre class="payload">{"[host]\nhost = \"0.0.0.0\"\ntls_authority = true"}</pre>
      </section>
    );
  return (
    <form class="card stack" onSubmit={submit}>
      <h2>Pair a device</h2>
      <label class="field"><span>Name</span><input value={name} maxLength={60} onInput={(event) => setName(event.currentTarget.value)} /></label>
      <fieldset class="question"><legend>It may</legend>
        {(Object.keys(RIGHTS) as Right[]).map((each) => <label key={each} class="check"><input type="radio" name="right" checked={right === each} onChange={() => setRight(each)} />{RIGHTS[each]}</label>)}
      </fieldset>
      <div><button type="submit" class="btn primary">Show a code</button></div>
      {made && <div class="stack"><Qr text={made.url} /><p class="small muted">Works once, until {new Date(made.expiresAt).toLocaleTimeString()}. Or type <code>{made.code}</code> there.</p><div><CopyButton text={() => made.url} label="Copy the link" /></div></div>}
    </form>
  );
}

const SignOut = (): JSX.Element => <button type="button" class="btn" onClick={() => void leave().finally(() => location.replace("/"))}>Sign out</button>;

export default function DevicesView(): JSX.Element {
  const at = useNow(30_000);
  const [list, set] = useState<Device[] | undefined>(undefined);
  const [error, fail] = useState("");
  const load = (): void => void devices().then((answer) => set(answer.devices), (problem: Error) => fail(problem.message));
  useEffect(() => {
    if (mayWrite()) load();
  }, []);
  const remove = async (device: Device): Promise<void> => {
    if (!(await confirmed(`Revoke “${device.name}”? It is disconnected at once and has to be paired again.`, "Revoke"))) return;
    await revoke(device.id).then(() => toast("Revoked"), (problem: Error) => tellRefused(problem.message));
    load();
  };
  return (
    <div class="pane-body"><div class="page narrow">
      <h1>Devices</h1>
      {error && <p class="note danger break">{error}</p>}
      <ul class="tree" style={{ gap: "8px" }}>
        {list?.map((device) => (
          <li key={device.id} class="tree-row card">
            <div class="grow stack" style={{ gap: "2px" }}><div class="row wrap"><strong class="break">{device.name}</strong>{device.current && <span class="chip">This one</span>}</div><p class="small muted break">{RIGHTS[device.right]} · last seen {ago(device.lastSeenAt, at)}</p></div>
            {!device.current && <button type="button" class="btn bad" onClick={() => void remove(device)}>Revoke</button>}
            {device.current && <SignOut />}
          </li>
        ))}
      </ul>
      {mayWrite() ? <Pair onPaired={load} /> : <div class="note row wrap"><span class="grow">{onlyWords()}</span><SignOut /></div>}
    </div></div>
  );
}
