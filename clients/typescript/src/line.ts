import type { Worker as Thread } from "node:worker_threads";

import type { components } from "./schema.gen.js";

/** What a thread needs to keep the attempts of a worker. */
export interface Keeping {
  readonly alive: Int32Array; // changes while the event loop of the worker turns
  readonly url: string;
  readonly headers: [string, string][];
  readonly worker: string;
  readonly heartbeatMs: number;
  readonly stillMs: number;
}

export interface Sent {
  id: number;
  url: string;
  method: string;
  headers: [string, string][];
  body: string;
}

/** To the thread. */
export type Order = { send: Sent } | { abort: number } | { over: string };

/** From the thread: the answer to a request, or to a heartbeat of its own. */
export type News =
  | { id: number; status: number; headers: [string, string][]; text: string }
  | { id: number; failed: string; code?: string }
  | HeartbeatAnswer;
export interface HeartbeatAnswer {
  answer: components["schemas"]["WorkHeartbeatAnswer"];
  tokens: string[];
  sentAt: number;
}

type Settle = { resolve: (response: Response) => void; reject: (error: unknown) => void };

/**
 * Sends the requests of a worker from a thread of its own. While the event loop of the worker stands still, the thread sends
 * heartbeats for the attempts in hand, and ends open claims, because attempts in their answers would have to wait.
 */
export class Line {
  readonly #keeping: Keeping;
  readonly #answer: (news: HeartbeatAnswer) => void;
  readonly #open = new Map<number, Settle>();
  #thread: Thread | undefined;
  #sign: ReturnType<typeof setInterval> | undefined;
  #last = 0;

  constructor(keeping: Omit<Keeping, "alive">, answer: (news: HeartbeatAnswer) => void) {
    this.#keeping = { ...keeping, alive: new Int32Array(new SharedArrayBuffer(4)) };
    this.#answer = answer;
  }

  /** Starts the thread. Where there are no threads, as in a browser, requests are sent without one. */
  async start(failed: (error: unknown) => void): Promise<void> {
    try {
      const { Worker: NodeThread } = await import("node:worker_threads");
      const thread = new NodeThread(new URL("./line.thread.js", import.meta.url), { workerData: this.#keeping });
      thread.on("message", (news: News) => this.#receive(news));
      thread.on("error", (error) => {
        this.#thread = undefined;
        this.#open.forEach(({ reject }) => reject(new TypeError("fetch failed", { cause: error })));
        failed(error);
      });
      this.#thread = thread;
      this.#sign = setInterval(() => Atomics.add(this.#keeping.alive, 0, 1), signMs);
    } catch (error) {
      failed(error);
    }
  }

  /** Like the global fetch. */
  readonly fetch = async (request: Request, init?: RequestInit): Promise<Response> => {
    const thread = this.#thread;
    if (!thread) {
      return fetch(request, init);
    }
    const signal = init?.signal ?? request.signal;
    const send: Sent = {
      id: ++this.#last,
      url: request.url,
      method: request.method,
      headers: [...request.headers],
      body: await request.text(),
    };
    signal.throwIfAborted();
    return new Promise((resolve, reject) => {
      const abort = () => {
        this.#open.delete(send.id);
        thread.postMessage({ abort: send.id } satisfies Order);
        reject(signal.reason as Error);
      };
      const done = () => signal.removeEventListener("abort", abort);
      const settle: Settle = {
        resolve: (response) => (done(), resolve(response)),
        reject: (error) => (done(), reject(error as Error)),
      };
      this.#open.set(send.id, settle);
      signal.addEventListener("abort", abort, { once: true });
      thread.postMessage({ send } satisfies Order);
    });
  };

  /** Ends the heartbeats of an attempt. */
  over(token: string): void {
    this.#thread?.postMessage({ over: token } satisfies Order);
  }

  async close(): Promise<void> {
    clearInterval(this.#sign);
    await this.#thread?.terminate();
  }

  #receive(news: News): void {
    if ("answer" in news) {
      return this.#answer(news);
    }
    const open = this.#open.get(news.id);
    this.#open.delete(news.id);
    if ("failed" in news) {
      open?.reject(new TypeError("fetch failed", { cause: Object.assign(new Error(news.failed), { code: news.code }) }));
    } else {
      const { status, headers, text } = news;
      open?.resolve(new Response(text === "" ? null : text, { status, headers }));
    }
  }
}

const signMs = 250;
