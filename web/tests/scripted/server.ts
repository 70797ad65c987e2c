/** The built page and a scripted host on one port of this machine, for a real browser. */

import { createReadStream, existsSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { type WebSocket, WebSocketServer } from "ws";
import type { Connection, ScriptedHost } from "./host.ts";

const PAGE = fileURLToPath(new URL("../../../src/ahpkit/web/page", import.meta.url));
const TYPES: Record<string, string> = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".json": "application/json", ".svg": "image/svg+xml", ".png": "image/png", ".webmanifest": "application/manifest+json" };

/** The policy that the real host sends, so that tests find what it forbids. */
export const CSP = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; worker-src 'self'; manifest-src 'self'; frame-src 'self' data: https: http://127.0.0.1:* http://localhost:*; font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

export class PageServer {
  url = "";
  port = 0;
  /** What a canvas at /canvas/… shows. */
  canvas = "";
  #server: Server;
  #sockets: WebSocketServer;
  #open = new Set<WebSocket>();

  constructor(
    readonly host: ScriptedHost,
    readonly me: () => unknown = () => ({ right: "everything", pairing: { possible: false, reason: "This host listens on this machine only." } }),
  ) {
    this.#server = createServer((request, response) => {
      const path = new URL(request.url ?? "/", "http://x").pathname;
      if (path === "/page/me") {
        response.writeHead(200, { "Content-Type": "application/json" });
        return response.end(JSON.stringify(this.me()));
      }
      if (path === "/page/devices") {
        response.writeHead(200, { "Content-Type": "application/json" });
        return response.end(JSON.stringify({ devices: [{ id: "d1", name: "This browser", right: "everything", createdAt: "2026-01-05T09:00:00Z", lastSeenAt: "2026-01-05T10:00:00Z", current: true }] }));
      }
      if (path.startsWith("/canvas/")) {
        response.writeHead(200, { "Content-Type": "text/html" });
        return response.end(this.canvas);
      }
      const file = join(PAGE, normalize(path === "/" ? "/index.html" : path));
      if (!file.startsWith(PAGE) || !existsSync(file)) {
        response.writeHead(404);
        return response.end();
      }
      response.writeHead(200, { "Content-Type": TYPES[extname(file)] ?? "application/octet-stream", "Content-Security-Policy": CSP });
      return createReadStream(file).pipe(response);
    });
    this.#sockets = new WebSocketServer({ server: this.#server });
    this.#sockets.on("connection", (socket) => this.#accept(socket));
  }

  #accept(socket: WebSocket): void {
    this.#open.add(socket);
    const connection: Connection = this.host.connect(
      (text) => socket.readyState === socket.OPEN && socket.send(text),
      () => socket.terminate(),
    );
    socket.on("message", (data) => void this.host.receive(connection, String(data)));
    socket.on("close", () => {
      this.#open.delete(socket);
      this.host.connections.delete(connection);
    });
  }

  async listen(port = 0): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(port, "127.0.0.1", resolve));
    this.port = (this.#server.address() as AddressInfo).port;
    this.url = `http://127.0.0.1:${this.port}/`;
    return this;
  }

  async close(): Promise<void> {
    for (const socket of this.#open) socket.terminate();
    this.#sockets.close();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
