/** Which URLs a canvas may be loaded from. A URL that a browser would have to repair is refused. */

export interface Verdict {
  /** The URL to load, or the reason why there is none. */
  url: string | undefined;
  reason: string;
  /** The host that would be contacted, if it is neither this machine nor the one this page comes from. */
  foreign: string | undefined;
}

const refuse = (reason: string): Verdict => ({ url: undefined, reason, foreign: undefined });
const LOCAL = new Set(["localhost", "127.0.0.1"]);

export function checkCanvasUrl(url: unknown, page: URL): Verdict {
  if (typeof url !== "string" || !url) return refuse("it has no page");
  if (url.length > 65_536) return refuse("its address is too long");
  if (/[\u0000-\u0020\\\u007f]/.test(url.trim()) || url !== url.trim()) return refuse("its address has characters that do not belong there");
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    return refuse("its address cannot be read");
  }
  if (parsed.protocol === "data:") return { url, reason: "", foreign: undefined };
  if (!/^https?:\/\/[^/]/i.test(url)) return refuse(`addresses of the kind ${parsed.protocol} are not shown`);
  if (parsed.username || parsed.password) return refuse("its address holds a name or a password");
  if (!url.toLowerCase().startsWith(`${parsed.protocol}//${parsed.host}`)) return refuse("its address is not written as it is meant");
  const local = LOCAL.has(parsed.hostname);
  if (parsed.protocol === "http:" && !local) return refuse("plain http is shown from this machine only");
  // A page that was loaded over the network reaches the host's own canvases at the same address as itself.
  const away = !LOCAL.has(page.hostname) && !page.hostname.endsWith(".localhost");
  if (local && away && parsed.pathname.startsWith("/canvas/")) return { url: `${page.origin}${parsed.pathname}${parsed.search}`, reason: "", foreign: undefined };
  return { url, reason: "", foreign: local ? undefined : parsed.host };
}
