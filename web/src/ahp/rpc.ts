/** A JSON-RPC 2.0 peer: ids, answers, requests both ways. It is given text and a function that sends text, so it works with any socket. */

export class RpcError extends Error {
  constructor(
    readonly code: number,
    message: string,
    readonly data?: unknown,
  ) {
    super(message);
    this.name = "RpcError";
  }
}

/** The connection ended before the answer came. The request may or may not have been carried out. */
export class ConnectionLost extends Error {
  constructor(message = "The connection was lost.") {
    super(message);
    this.name = "ConnectionLost";
  }
}

type Params = Record<string, unknown>;

export interface RpcHandlers {
  onNotification(method: string, params: Params): void;
  /** Answer a request of the other side; throw an `RpcError` to refuse. */
  onRequest?(method: string, params: Params): unknown | Promise<unknown>;
}

interface Waiting {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

export class RpcPeer {
  #next = 1;
  #waiting = new Map<number, Waiting>();
  #closed = false;

  constructor(
    private readonly send: (text: string) => void,
    private readonly handlers: RpcHandlers,
  ) {}

  request<T = unknown>(method: string, params: Params): Promise<T> {
    if (this.#closed) return Promise.reject(new ConnectionLost());
    const id = this.#next++;
    return new Promise<T>((resolve, reject) => {
      this.#waiting.set(id, { resolve: resolve as (value: unknown) => void, reject });
      this.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
    });
  }

  notify(method: string, params: Params): void {
    if (!this.#closed) this.send(JSON.stringify({ jsonrpc: "2.0", method, params }));
  }

  /** Handle one frame of the other side. A frame that is not JSON-RPC is ignored. */
  receive(text: string): void {
    let message: Record<string, unknown>;
    try {
      message = JSON.parse(text) as Record<string, unknown>;
    } catch {
      return;
    }
    if (typeof message !== "object" || message === null || Array.isArray(message)) return;
    if (typeof message.method === "string") this.#called(message);
    else if (typeof message.id === "number") this.#answered(message.id, message);
  }

  /** The connection ended: all waiting requests fail. */
  close(error: Error = new ConnectionLost()): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const waiting of this.#waiting.values()) waiting.reject(error);
    this.#waiting.clear();
  }

  #called(message: Record<string, unknown>): void {
    const params = (message.params ?? {}) as Params;
    const method = message.method as string;
    if (message.id === undefined) return this.handlers.onNotification(method, params);
    void this.#serve(message.id, method, params);
  }

  async #serve(id: unknown, method: string, params: Params): Promise<void> {
    let answer: Record<string, unknown>;
    try {
      if (!this.handlers.onRequest) throw new RpcError(-32601, `This client does not serve ${method}.`);
      answer = { result: (await this.handlers.onRequest(method, params)) ?? null };
    } catch (error) {
      const known = error instanceof RpcError ? error : new RpcError(-32603, "Internal error");
      answer = { error: { code: known.code, message: known.message, data: known.data } };
    }
    if (!this.#closed) this.send(JSON.stringify({ jsonrpc: "2.0", id, ...answer }));
  }

  #answered(id: number, message: Record<string, unknown>): void {
    const waiting = this.#waiting.get(id);
    if (!waiting) return;
    this.#waiting.delete(id);
    const error = message.error as { code?: number; message?: string; data?: unknown } | undefined;
    if (error) waiting.reject(new RpcError(error.code ?? -32603, error.message ?? "The host refused.", error.data));
    else waiting.resolve(message.result);
  }
}
