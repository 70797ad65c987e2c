/** A new session: agent, directory, model, options from the agent's own schema, and the first message. */

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { type ConfigProperty, type ConfigSchema, type Message, ROOT, type SessionState } from "../ahp/index.ts";
import { mayWrite, onlyWords } from "../local/me.ts";
import { sendMessage, userMessage } from "../local/outbox.ts";
import { keep, kept, lastAgent } from "../local/settings.ts";
import { sessionUrl } from "../mirror/inbox.ts";
import { directoryOf, pathOf, toUri } from "../mirror/selectors.ts";
import { firstSeen, hostInfo, presence, request, root, sessions } from "../mirror/store.ts";
import { go } from "../routes.ts";
import { announce, copy, toast } from "../ui/bits.tsx";

function Property({ name, property, value, onChange, complete }: { name: string; property: ConfigProperty; value: unknown; onChange(value: unknown): void; complete(query: string): Promise<{ value: string; label: string }[]> }): JSX.Element | null {
  const [items, setItems] = useState<{ value: string; label: string }[]>([]);
  if (property.readOnly || property.type === "object" || property.type === "array") return null;
  if (property.type === "boolean")
    return <label class="check"><input type="checkbox" checked={value === true} onChange={(event) => onChange(event.currentTarget.checked)} /><span>{property.title}{property.description && <span class="small muted" style={{ display: "block" }}>{property.description}</span>}</span></label>;
  if (property.enum && !property.enumDynamic)
    return (
      <label class="field"><span>{property.title}</span>
        <select value={String(value ?? "")} onChange={(event) => onChange(property.enum?.[event.currentTarget.selectedIndex])}>
          {property.enum.map((each, index) => <option key={String(each)} value={String(each)}>{property.enumLabels?.[index] ?? String(each)}</option>)}
        </select>
        {property.description && <span class="muted">{property.description}</span>}
      </label>
    );
  return (
    <label class="field"><span>{property.title}</span>
      <input type={property.type === "number" ? "number" : "text"} list={property.enumDynamic ? `values-${name}` : undefined} value={value === undefined ? "" : String(value)}
        onFocus={() => property.enumDynamic && void complete("").then(setItems)}
        onInput={(event) => {
          const text = event.currentTarget.value;
          onChange(property.type !== "number" ? text : text === "" ? undefined : Number(text));
          if (property.enumDynamic) void complete(text).then(setItems);
        }} />
      {property.enumDynamic && <datalist id={`values-${name}`}>{items.map((item) => <option key={item.value} value={item.value}>{item.label}</option>)}</datalist>}
      {property.description && <span class="muted">{property.description}</span>}
    </label>
  );
}

const WRITTEN = "new";

export default function NewSession(): JSX.Element {
  const agents = root.value?.agents ?? [];
  const [provider, setProvider] = useState(lastAgent.value.provider ?? agents[0]?.provider ?? "");
  const [typed, setDirectory] = useState<string | undefined>(undefined);
  // The host may tell its directory only after this is shown.
  const directory = typed ?? (lastAgent.value.directory || (hostInfo.value?.defaultDirectory ? pathOf(hostInfo.value.defaultDirectory) : ""));
  const [model, setModel] = useState("");
  const [schema, setSchema] = useState<ConfigSchema | undefined>(undefined);
  const [values, setValues] = useState<Record<string, unknown>>({});
  const [text, setText] = useState(() => kept(WRITTEN, "")); // Kept, so that a reload or a visit to another session does not lose it.
  const write = (words: string): void => {
    setText(words);
    keep(WRITTEN, words || undefined);
  };
  const [error, fail] = useState("");
  const [busy, setBusy] = useState(false);
  const agent = agents.find((each) => each.provider === provider) ?? agents[0];
  const known = [...new Set([...sessions.value.values()].map(directoryOf).filter(Boolean))].slice(0, 30);

  useEffect(() => {
    if (!provider && agents[0]) setProvider(agents[0].provider);
  }, [agents.length]);
  useEffect(() => {
    if (!agent) return undefined;
    let here = true;
    const params = { channel: ROOT, provider: agent.provider, ...(directory ? { workingDirectory: toUri(directory) } : {}) };
    const timer = setTimeout(() => {
      request<{ schema: ConfigSchema; values: Record<string, unknown> }>("resolveSessionConfig", params).then(
        (answer) => {
          if (!here) return;
          setSchema(answer.schema);
          setValues(answer.values);
        },
        () => here && setSchema(undefined),
      );
    }, 200);
    return () => {
      here = false;
      clearTimeout(timer);
    };
  }, [agent?.provider, directory]);

  const area = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    if (matchMedia("(pointer: fine)").matches) area.current?.focus(); // On a phone its keyboard would cover the form.
  }, []);

  const create = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (!agent || busy) return;
    setBusy(true);
    fail("");
    const session = `ahp-session:/${crypto.randomUUID()}`;
    try {
      await request("createSession", {
        channel: session, provider: agent.provider, ...(directory ? { workingDirectories: [toUri(directory)] } : {}),
        ...(schema && Object.keys(schema.properties).length ? { config: values } : {}), progressToken: session,
        activeClient: presence(), // From the beginning, because the first turn may open a canvas.
      });
    } catch (problem) {
      fail((problem as Error).message);
      return setBusy(false);
    }
    lastAgent.value = { provider: agent.provider, directory };
    keep(WRITTEN, undefined);
    go(sessionUrl(session));
    announce("Session created");
    if (text.trim()) void firstMessage(session, userMessage(text, model ? { model: { id: model } } : {}));
  };

  if (!mayWrite()) return <p class="empty">{onlyWords()}</p>;
  const properties = Object.entries(schema?.properties ?? {});
  const option = ([name, property]: [string, ConfigProperty]): JSX.Element => (
    <Property key={name} name={name} property={property} value={values[name] ?? property.default} onChange={(value) => setValues({ ...values, [name]: value })}
      complete={(query) => request<{ items: { value: string; label: string }[] }>("sessionConfigCompletions", { channel: ROOT, provider: agent?.provider, config: values, property: name, query }).then((answer) => answer.items, () => [])} />
  );
  return (
    <div class="pane-body">
      <form class="page narrow" onSubmit={(event) => void create(event)}>
        <h1>New session</h1>
        <label class="field"><span>What shall the agent do?</span>
          <textarea ref={area} rows={4} value={text} placeholder="You can also write this later" onInput={(event) => write(event.currentTarget.value)}
            onKeyDown={(event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.isComposing && event.currentTarget.form?.requestSubmit()} />
        </label>
        <div class="two">
          <label class="field"><span>Agent</span>
            <select value={agent?.provider ?? ""} onChange={(event) => setProvider(event.currentTarget.value)}>
              {agents.map((each) => <option key={each.provider} value={each.provider}>{each.displayName}</option>)}
            </select>
            {agent?.description && <span class="muted">{agent.description}</span>}
          </label>
          {agent && agent.models.length > 1 && (
            <label class="field"><span>Model</span>
              <select value={model} onChange={(event) => setModel(event.currentTarget.value)}>
                <option value="">The agent's default</option>
                {agent.models.map((each) => <option key={each.id} value={each.id}>{each.name}</option>)}
              </select>
            </label>
          )}
        </div>
        <label class="field"><span>Directory</span>
          <input class="mono" list="directories" value={directory} spellcheck={false} onInput={(event) => setDirectory(event.currentTarget.value)} />
          <datalist id="directories">{known.map((uri) => <option key={uri} value={pathOf(uri)} />)}</datalist>
        </label>
        {properties.length > 0 && <fieldset class="question"><legend class="small muted">Options</legend><div class="two">{properties.map(option)}</div></fieldset>}
        {error && <p class="note danger break" role="alert">{error}</p>}
        <div class="row"><button type="submit" class="btn primary" disabled={busy || !agent}>{text.trim() ? "Start" : "Create"}</button><a class="btn" href="#/">Cancel</a></div>
        {!agents.length && <p class="note">{root.value ? "This host has no agents yet." : "Waiting for the host…"}</p>}
      </form>
    </div>
  );
}

/** The chat exists as soon as its session does; the message waits until then, like any other message, however long that takes. */
async function firstMessage(session: string, message: Message): Promise<void> {
  const chat = await firstSeen(session, "session", (state: SessionState) => state.defaultChat ?? state.chats[0]?.resource);
  if (chat) return void (await sendMessage(chat, message, "turn"));
  toast("The first message was not sent: its session is gone.", { label: "Copy it", run: () => void copy(message.text) });
}
