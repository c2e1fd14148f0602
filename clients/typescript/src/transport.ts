import { ConnectionError, emptyPolicies, retryAfter } from "./errors.js";
import type { Codec } from "./json.js";

/** The version of the API that this client was made for, and of this package. */
export const version = "0.1.0";

export interface TransportOptions {
  /** Ends a single request after this time; 120,000 by default. Streams have no timeout. */
  timeoutMs?: number;
  /** How often a request that may be repeated is repeated; 4 by default. After a 429 more often, for 30 s. */
  retries?: number;
  /** Replaces the global fetch. */
  fetch?: (request: Request, init?: RequestInit) => Promise<Response>;
}

const firstPause = 100;
const longestPause = 5_000;
const patience = 30_000; // ms in total that a call waits for rate limits
const maxLimited = 10; // tries that a rate limit may refuse

/**
 * Sends requests, and repeats one if the repetition cannot have a second effect: a read, a request with an Idempotency-Key, one
 * for which no connection was made, and one that was refused without any effect (408, 429).
 */
export class Transport {
  readonly timeoutMs: number;
  readonly #retries: number;
  readonly #fetch: (request: Request, init?: RequestInit) => Promise<Response>;
  readonly #closed = new AbortController();
  readonly #next = new Map<string, number>(); // by policy of RateLimit, when requests are allowed again

  constructor(
    options: TransportOptions,
    readonly codec: Codec,
  ) {
    this.timeoutMs = options.timeoutMs ?? 120_000;
    this.#retries = options.retries ?? 4;
    this.#fetch = options.fetch ?? ((request, init) => fetch(request, init));
  }

  /** Ends all requests, and makes every later one fail. */
  close(): void {
    this.#closed.abort(new ConnectionError("the client was closed"));
  }

  /** A signal that is aborted with the client, and with the given signal. */
  signal(own?: AbortSignal | null): AbortSignal {
    return own ? AbortSignal.any([own, this.#closed.signal]) : this.#closed.signal;
  }

  /** The response, whose body has been read. repeatable: the body has the keys that make a repetition harmless. */
  async send(request: Request, repeatable = false): Promise<Response> {
    const end = Date.now() + patience;
    const signal = this.signal(request.signal);
    for (let limited = 0, failed = 0; ; ) {
      signal.throwIfAborted();
      await this.#pace(request, end, signal);
      let pause: number;
      const answer = await this.#once(request.clone(), signal);
      if (answer instanceof Response && answer.status === 429) {
        const after = retryAfter(answer.headers);
        limited++;
        if (after === undefined || limited === maxLimited || Date.now() + after > end) {
          return answer;
        }
        pause = after * (1 + Math.random() / 10);
      } else if (mayRepeat(request, repeatable, answer) && failed < this.#retries) {
        pause = Math.max(backoff(failed), (answer instanceof Response && retryAfter(answer.headers)) || 0);
        failed++;
        if (pause > patience) {
          return given(answer);
        }
      } else {
        return given(answer);
      }
      await sleep(pause, signal);
    }
  }

  /** One try to open a stream, whose body is not read yet. */
  async open(request: Request): Promise<Response> {
    request.signal.throwIfAborted();
    try {
      return await this.#fetch(request);
    } catch (error) {
      request.signal.throwIfAborted();
      throw unreached(error);
    }
  }

  async #once(request: Request, signal: AbortSignal): Promise<Response | ConnectionError> {
    try {
      const response = await this.#fetch(request, { signal: AbortSignal.any([signal, AbortSignal.timeout(this.timeoutMs)]) });
      const body = await response.arrayBuffer();
      for (const [policy, left] of emptyPolicies(response.headers)) {
        this.#next.set(policy, Date.now() + left);
      }
      const { status, statusText, headers } = response;
      if (status < 200 || status > 599) {
        return new ConnectionError("the answer is a redirect, which is not followed");
      }
      return this.#read(new Response(body.byteLength > 0 ? body : null, { status, statusText, headers }));
    } catch (error) {
      signal.throwIfAborted();
      return unreached(error);
    }
  }

  /** Makes openapi-fetch parse a response as this client does. With a length it calls json(), and else JSON.parse. */
  #read(response: Response): Response {
    const { codec } = this;
    if (codec.numbers === "lossless" && response.ok && response.body) {
      response.headers.set("Content-Length", "1");
      Object.defineProperty(response, "json", { value: async () => codec.parse(await response.text()) });
    }
    return response;
  }

  /** Waits until the rate limits of earlier responses allow the request. If that would take too long, it is sent at once. */
  async #pace(request: Request, end: number, signal: AbortSignal): Promise<void> {
    const submits = request.method === "POST" && /\/api\/(jobs(\/batch|\/[^/]+\/run-again)?|batches|flows)$/.test(new URL(request.url).pathname);
    let at = 0;
    for (const [policy, next] of this.#next) {
      if (policy !== "jobs" || submits) {
        at = Math.max(at, next);
      }
    }
    if (at > Date.now() && at < end) {
      await sleep(at - Date.now(), signal);
    }
  }
}

function given(answer: Response | ConnectionError): Response {
  if (answer instanceof ConnectionError) {
    throw answer;
  }
  return answer;
}

const noConnection = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "UND_ERR_CONNECT_TIMEOUT"]);

function mayRepeat(request: Request, repeatable: boolean, answer: Response | ConnectionError): boolean {
  if (answer instanceof Response && answer.status === 408) {
    return true; // the gateway has not read the whole request
  }
  if (answer instanceof Response && ![502, 503, 504].includes(answer.status)) {
    return false;
  }
  const cause = answer instanceof ConnectionError ? (answer.cause as { code?: string; cause?: { code?: string } }) : undefined;
  return (
    repeatable ||
    ["GET", "HEAD", "PUT"].includes(request.method) ||
    request.headers.has("Idempotency-Key") ||
    noConnection.has(cause?.cause?.code ?? cause?.code ?? "")
  );
}

function unreached(error: unknown): ConnectionError {
  const { message, cause } = error as Error & { cause?: Error };
  return new ConnectionError(cause?.message ? `${message}: ${cause.message}` : message, { cause: error });
}

/** A pause that doubles with each failure. Half of it is random, so that clients that failed together do not retry together. */
export function backoff(failed: number): number {
  const most = Math.min(firstPause * 2 ** failed, longestPause);
  return most / 2 + (Math.random() * most) / 2;
}

/** Resolves after a time, or rejects at once when the signal is aborted. */
export function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const ended = () => {
      clearTimeout(timer);
      reject(signal.reason as Error);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", ended);
      resolve();
    }, ms);
    signal.addEventListener("abort", ended, { once: true });
  });
}
