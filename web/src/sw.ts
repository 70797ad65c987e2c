/** Keeps the page's own files so that it opens without a network, and brings a notification's window to the front. */

export {};
declare const self: ServiceWorkerGlobalScope;

const SHELL = "shell";

async function keep(): Promise<void> {
  const cache = await caches.open(SHELL);
  const list = (await (await fetch("/assets.json", { cache: "no-store" })).json()) as Record<string, { file: string; css?: string[] }>;
  const files = new Set(["/", "/manifest.webmanifest", "/icon.svg"]);
  for (const entry of Object.values(list)) for (const file of [entry.file, ...(entry.css ?? [])]) if (file !== "sw.js") files.add(`/${file}`);
  await cache.addAll([...files]);
  for (const request of await cache.keys()) if (!files.has(new URL(request.url).pathname)) await cache.delete(request);
}

self.addEventListener("install", (event) => {
  event.waitUntil(keep().then(() => self.skipWaiting()));
});
self.addEventListener("activate", (event) => {
  event.waitUntil(self.clients.claim());
});

/** Files with a hash in their name never change. The page itself is requested again as long as the host answers. */
async function answer(request: Request): Promise<Response> {
  const url = new URL(request.url);
  const cache = await caches.open(SHELL);
  if (request.mode === "navigate") {
    try {
      return await fetch(request);
    } catch {
      return (await cache.match("/")) ?? Response.error();
    }
  }
  const kept = await cache.match(url.pathname);
  if (kept) return kept;
  const fresh = await fetch(request);
  if (fresh.ok && url.pathname.startsWith("/assets/")) await cache.put(url.pathname, fresh.clone());
  return fresh;
}

self.addEventListener("fetch", (event) => {
  const url = new URL(event.request.url);
  const ours = url.origin === self.location.origin && event.request.method === "GET";
  const shell = event.request.mode === "navigate" ? url.pathname === "/" : /^\/(assets\/|icon\.svg|manifest\.webmanifest)/.test(url.pathname);
  if (ours && shell) event.respondWith(answer(event.request));
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  const hash = String((event.notification.data as { url?: string } | null)?.url ?? "#/");
  const open = async (): Promise<void> => {
    const [window] = await self.clients.matchAll({ type: "window" });
    if (!window) return void (await self.clients.openWindow(`/${hash}`));
    await window.focus();
    window.postMessage({ go: hash });
  };
  event.waitUntil(open());
});
