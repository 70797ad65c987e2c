/** Commands by name: Ctrl or ⌘ with K. Everything the page can do without a mouse. */

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { inbox, type InboxItem, pointed, sessionUrl } from "../mirror/inbox.ts";
import { mayWrite } from "../local/me.ts";
import { theme } from "../local/settings.ts";
import { titleOf } from "../mirror/selectors.ts";
import { agentName, sessions } from "../mirror/store.ts";
import { go, type Panel, panelUrl, route } from "../routes.ts";
import { afterDialog, Dialog, focusSoon, toast } from "../ui/bits.tsx";
import { archive, markRead } from "./sessions.tsx";

export const palette = signal(false);
export const help = signal(false);

interface Command {
  label: string;
  hint?: string;
  run(): void;
}

/** Go to a view and focus it. A session focuses its composer. */
function show(hash: string, region?: string): void {
  go(hash);
  if (region) focusSoon(region);
  else (document.activeElement as HTMLElement | null)?.blur();
}

const PANELS: [Panel, string][] = [["changes", "Changes"], ["canvases", "Canvases"], ["terminals", "Terminals"], ["setup", "Customizations and servers"], ["timeline", "Timeline"], ["usage", "Usage of this session"]];

function commands(): Command[] {
  const at = route.value;
  const list: Command[] = [
    { label: "Inbox", run: () => show("#/", "region-main") },
    ...(mayWrite() ? [{ label: "New session", run: () => show("#/new") }] : []),
    { label: "Usage and cost", run: () => show("#/usage", "region-main") },
    { label: "Approval rules", run: () => show("#/rules", "region-main") },
    { label: "Devices", run: () => show("#/devices", "region-main") },
    { label: "Settings", run: () => show("#/settings", "region-main") },
    { label: "Next thing that waits", hint: "F8", run: nextPending },
    { label: "Keyboard shortcuts", hint: "Ctrl+/", run: () => (help.value = true) },
    { label: "Theme: system", run: () => (theme.value = "system") },
    { label: "Theme: light", run: () => (theme.value = "light") },
    { label: "Theme: dark", run: () => (theme.value = "dark") },
  ];
  if (at.name === "session") {
    const summary = sessions.value.get(at.session);
    list.unshift(...PANELS.map(([panel, label]) => ({ label: `Show ${label.toLowerCase()}`, run: () => show(panelUrl(at, panel), "region-side") })));
    if (summary && mayWrite()) list.push({ label: "Archive this session", run: () => void archive(summary, true) }, { label: "Mark this session unread", run: () => void markRead(summary.resource, false) });
  }
  for (const summary of sessions.value.values()) list.push({ label: titleOf(summary), hint: `Session · ${agentName(summary.provider)}`, run: () => show(sessionUrl(summary.resource)) });
  return list;
}

let visited: string | undefined;

/** Go to what waits in this session, then to the next request, and after the last to the first again. Its card gets the focus. */
export function nextPending(): void {
  const items = inbox.value;
  if (!items.length) return toast("Nothing waits for you");
  const at = route.value;
  const isHere = (item: InboxItem): boolean => at.name === "session" && item.session === at.session;
  const before = items.findIndex((item) => isHere(item) && item.key === visited);
  const index = before < 0 ? Math.max(0, items.findIndex(isHere)) : (before + 1) % items.length;
  const next = items[index] as InboxItem;
  visited = next.key;
  pointed.value = next.request ? next.key : undefined;
  go(next.url);
}

export function Palette(): JSX.Element | null {
  if (!palette.value) return null;
  return <Open />;
}

function Open(): JSX.Element {
  const [text, set] = useState("");
  const [index, choose] = useState(0);
  const found = useMemo(() => {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    return commands().filter((command) => words.every((word) => command.label.toLowerCase().includes(word))).slice(0, 40);
  }, [text]);
  const run = (command: Command | undefined): void => {
    palette.value = false;
    if (command) afterDialog(command.run);
  };
  return (
    <Dialog label="Commands" onClose={() => (palette.value = false)}>
      <div class="inside" style={{ padding: "8px", gap: "4px" }}>
        <input autofocus role="combobox" aria-expanded="true" aria-controls="palette-list" aria-activedescendant={`palette-${index}`} aria-label="Find a command or a session" placeholder="Find a command or a session" value={text}
          onInput={(event) => {
            set(event.currentTarget.value);
            choose(0);
          }}
          onKeyDown={(event) => {
            if (event.isComposing) return;
            if (event.key === "ArrowDown" || event.key === "ArrowUp") {
              event.preventDefault();
              choose((index + (event.key === "ArrowDown" ? 1 : -1) + found.length) % Math.max(1, found.length));
            }
            if (event.key === "Enter") {
              event.preventDefault();
              run(found[index]);
            }
          }} />
        <div role="listbox" id="palette-list" aria-label="Commands" style={{ maxHeight: "50dvh", overflow: "auto" }}>
          {found.map((command, at) => (
            <button key={`${command.label}${at}`} id={`palette-${at}`} type="button" role="option" tabIndex={-1} class="menu-item" aria-selected={at === index} onClick={() => run(command)}>
              <span class="row" style={{ width: "100%" }}><span class="grow cut" title={command.label}>{command.label}</span>{command.hint && <span class="sub">{command.hint}</span>}</span>
            </button>
          ))}
          {!found.length && <p class="small muted" style={{ padding: "12px" }}>Nothing found.</p>}
        </div>
      </div>
    </Dialog>
  );
}

const KEYS: [string, string][] = [
  ["Ctrl/⌘ K", "Commands and sessions"], ["F8", "Next thing that waits"], ["F6", "Next part of the page"], ["Ctrl/⌘ .", "Stop the agent"],
  ["Ctrl/⌘ Enter", "Send"], ["Shift Enter", "New line"], ["Esc", "Close a menu or dialog"], ["Ctrl/⌘ /", "This list"],
];

export function Help(): JSX.Element | null {
  if (!help.value) return null;
  return (
    <Dialog label="Keyboard shortcuts" onClose={() => (help.value = false)}>
      <div class="inside">
        <h2>Keyboard shortcuts</h2>
        <table><tbody>{KEYS.map(([key, what]) => <tr key={key}><td><span class="kbd">{key}</span></td><td>{what}</td></tr>)}</tbody></table>
        <form method="dialog"><button class="btn">Close</button></form>
      </div>
    </Dialog>
  );
}
