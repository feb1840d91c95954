/** Requests, their errors, and which of them are sent again. */

export interface ClientOptions {
  /** Instead of the global `fetch`. */
  fetch?: typeof fetch;
  /** How long a request may take that names no deadline of its own; 10 s by default. */
  timeoutMs?: number;
  /** How much longer than its deadline a search may take, for the network; 200 ms by default. */
  networkMs?: number;
  /** How often a write is sent again that failed for a reason that may pass; twice by default. */
  retries?: number;
}

/** A request failed. Nothing it was to write is known to be written, and nothing it looked for to be unknown. */
export class EchoicError extends Error {
  override readonly name = "EchoicError";
  /** The server's, such as "invalid_input" or "store_unavailable"; "timeout" and "unreachable" are the client's. */
  readonly code: string;
  /** Of the answer; undefined where there was none. */
  readonly status: number | undefined;
  /** The field of the request that is missing or invalid. */
  readonly field: string | undefined;
  /** How long the server asks you to wait. */
  readonly retryAfterS: number | undefined;

  constructor(
    message: string,
    code: string,
    more: { status?: number; field?: string | undefined; retryAfterS?: number | undefined; cause?: unknown } = {},
  ) {
    super(message, "cause" in more ? { cause: more.cause } : undefined);
    this.code = code;
    this.status = more.status;
    this.field = more.field;
    this.retryAfterS = more.retryAfterS;
  }

  /** Whether the same request may succeed later. */
  get isTemporary(): boolean {
    return this.status === undefined || [409, 429, 502, 503, 504].includes(this.status);
  }
}

/** How long an erasure may take at least. */
const ERASURE_MS = 60_000;

type Method = "GET" | "POST" | "PUT" | "DELETE";

/** Gives a token; `isRefused`: the one it gave last is good no longer. */
type Tokens = (isRefused: boolean) => Promise<string>;

/** The /v1 routes of one server, for the holder of one token. */
export class Transport {
  readonly #base: string;
  readonly #tokens: Tokens;
  readonly #fetch: typeof fetch;
  readonly #timeoutMs: number;
  readonly #networkMs: number;
  readonly #retries: number;

  constructor(url: string, tokens: Tokens, options: ClientOptions) {
    this.#base = `${new URL(url).href.replace(/\/+$/, "")}/v1`; // what is no URL is refused here, as a TypeError
    this.#tokens = tokens;
    // called as a function of its own: some runtimes refuse it as a method of another object
    this.#fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init));
    this.#timeoutMs = options.timeoutMs ?? 10_000;
    this.#networkMs = options.networkMs ?? 200;
    this.#retries = options.retries ?? 2;
  }

  /** Sent once: an answer that is late is of no use to somebody who waits on the telephone. */
  read<T>(method: Method, path: string, body?: object, deadlineMs?: number | null): Promise<T> {
    return this.#authorised(method, path, body, deadlineMs == null ? this.#timeoutMs : deadlineMs + this.#networkMs);
  }

  /** Sent once: a receipt is given once, and an erasure takes longer than another write. */
  erase<T>(path: string, body: object): Promise<T> {
    return this.#authorised("POST", path, body, Math.max(this.#timeoutMs, ERASURE_MS));
  }

  /**
   * Sent again where it may help: these writes may be repeated without harm. With `tellsWhatWasThere` not where the
   * answer was lost: a second one would say that there was nothing.
   */
  async write<T>(method: Method, path: string, body?: object, tellsWhatWasThere = false): Promise<T> {
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.#authorised<T>(method, path, body, this.#timeoutMs);
      } catch (error) {
        if (!(error instanceof EchoicError) || !error.isTemporary || attempt >= this.#retries) throw error;
        if (tellsWhatWasThere && [undefined, 502, 504].includes(error.status)) throw error;
        const waitMs = Math.min(1000 * (error.retryAfterS ?? 0), 5_000) || 200 * 2 ** attempt;
        await new Promise((resolve) => setTimeout(resolve, waitMs));
      }
    }
  }

  async #authorised<T>(method: Method, path: string, body: object | undefined, timeoutMs: number): Promise<T> {
    const token = await this.#tokens(false);
    try {
      return await this.#send<T>(method, path, body, timeoutMs, token);
    } catch (error) {
      if (!(error instanceof EchoicError) || error.status !== 401) throw error;
      const other = await this.#tokens(true);
      if (other === token) throw error;
      return await this.#send<T>(method, path, body, timeoutMs, other);
    }
  }

  async #send<T>(
    method: Method,
    path: string,
    body: object | undefined,
    timeoutMs: number,
    token: string,
  ): Promise<T> {
    const headers: Record<string, string> = { Authorization: `Bearer ${token}` };
    // "error" would do, but edge runtimes do not have it; what is redirected is never followed with a token
    const init: RequestInit = { method, headers, signal: AbortSignal.timeout(timeoutMs), redirect: "manual" };
    if (body !== undefined) {
      headers["Content-Type"] = "application/json";
      init.body = JSON.stringify(body);
    }
    let answer: Response;
    let said: unknown;
    try {
      answer = await this.#fetch(this.#base + path, init);
      if (answer.type === "opaqueredirect" || (answer.status >= 300 && answer.status < 400)) {
        throw new TypeError("the server points elsewhere: give the URL it answers at");
      }
      said = await answer.json();
    } catch (cause) {
      const isLate = cause instanceof DOMException && cause.name === "TimeoutError";
      throw isLate
        ? new EchoicError(`no answer within ${timeoutMs} ms`, "timeout", { cause })
        : new EchoicError("the server cannot be reached, or its answer is not JSON", "unreachable", { cause });
    }
    if (!answer.ok) throw problem(answer, said);
    return said as T;
  }
}

function problem(answer: Response, said: unknown): EchoicError {
  const { error, code, field } = (typeof said === "object" && said !== null ? said : {}) as Record<string, unknown>;
  const retryAfterS = Number(answer.headers.get("Retry-After") ?? NaN);
  return new EchoicError(
    typeof error === "string" ? error : `the server answered ${answer.status}`,
    typeof code === "string" ? code : "refused",
    {
      status: answer.status,
      field: typeof field === "string" ? field : undefined,
      retryAfterS: Number.isNaN(retryAfterS) ? undefined : retryAfterS,
    },
  );
}
