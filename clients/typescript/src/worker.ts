import type { AbortReason, Attempt, AttemptContext, Handler, Level, Result, WorkerOptions } from "./attempt.js";
import { AttemptAborted, clean, NotRetryable, Outcome } from "./attempt.js";
import { Checkpoint } from "./checkpoint.js";
import type { AnyJobTypes, JobWeaver } from "./client.js";
import { ApiError, ConnectionError, JobWeaverError, unwrap } from "./errors.js";
import type { components } from "./schema.gen.js";
import { backoff, sleep } from "./transport.js";

type Schemas = components["schemas"];

/** An attempt of the worker, from its claim until its result is stored or the attempt is lost. */
interface Held {
  readonly token: string;
  readonly attempt: Attempt;
  readonly checkpoint: Checkpoint;
  readonly abort: AbortController;
  readonly lines: { level: Level; text: string }[]; // not yet sent in a heartbeat
  progress?: { percent: number; message?: string };
  aliveAt: number; // when the last answered heartbeat was sent
  settling: boolean;
  lost: boolean;
}

type Answered = { data?: Schemas["WorkSettled"]; error?: unknown; response: Response };

const holdMs = 30_000;
const lostAfterMs = 10_000; // without an answered heartbeat; 5 s later the next attempt may start
const lastAnswerMs = 500; // for the response to the open claim when the worker stops
const linesKept = 1_000; // of one attempt, while heartbeats fail
const linesInBeat = 200; // of one attempt
const beatBytes = 800_000; // of progress and lines; with the tokens a heartbeat stays below its limit

/** Claims attempts, runs their handlers and settles them, until it is stopped. */
export class Worker<Types extends object = AnyJobTypes> {
  readonly name: string;
  readonly #client: JobWeaver<Types>;
  readonly #options: WorkerOptions<Types>;
  readonly #handlers: Map<string, Handler>;
  readonly #concurrency: number;
  readonly #held = new Set<Held>();
  readonly #stopping = new AbortController();
  readonly #asking = new AbortController(); // aborts the open claim when the worker stops
  readonly #ended = new AbortController();
  #wake = () => {}; // ends #change()
  #beating: Promise<unknown> = Promise.resolve();
  #running: Promise<void> | undefined;

  constructor(client: JobWeaver<Types>, options: WorkerOptions<Types>) {
    this.#client = client;
    this.#options = options;
    this.#handlers = new Map(Object.entries(options.handlers)) as Map<string, Handler>;
    this.#concurrency = options.concurrency ?? 10;
    if (this.#handlers.size === 0) {
      throw new RangeError("a worker needs a handler");
    }
    if (!Number.isInteger(this.#concurrency) || this.#concurrency < 1 || this.#concurrency > 500) {
      throw new RangeError("concurrency must be a whole number from 1 to 500");
    }
    const host = typeof process === "undefined" ? undefined : process.env.HOSTNAME;
    this.name = options.name ?? `${host?.slice(0, 100) || "typescript"}-${crypto.randomUUID().slice(0, 8)}`;
  }

  /** Runs attempts until stop() is called. It throws if the gateway refuses claims of this worker. */
  run(): Promise<void> {
    return (this.#running ??= this.#run());
  }

  /** Claims nothing more, gives running handlers the grace period to end, and resolves when run() does: after the last handler. */
  async stop(): Promise<void> {
    if (!this.#stopping.signal.aborted) {
      this.#stopping.abort();
      setTimeout(() => this.#asking.abort(), lastAnswerMs).unref?.();
      this.#wake();
    }
    await this.#running?.catch(() => undefined); // run() throws it
  }

  async #run(): Promise<void> {
    const beats = this.#beats();
    try {
      await this.#claims();
    } finally {
      const stop = () => this.#held.forEach((held) => this.#end(held, "stop"));
      const grace = setTimeout(stop, this.#options.graceMs ?? 25_000);
      while (this.#held.size > 0) {
        await this.#change(); // while a handler runs, its attempt must not start elsewhere
      }
      clearTimeout(grace);
      this.#ended.abort();
      await beats;
    }
  }

  async #claims(): Promise<void> {
    const stop = this.#stopping.signal;
    const wait = Math.min(holdMs, Math.floor(this.#client.timeoutMs / 2));
    const asked = { worker: this.name, types: [...this.#handlers.keys()], queues: this.#options.queues, wait: `${wait}ms` };
    for (let failed = 0; !stop.aborted; ) {
      const slots = this.#concurrency - this.#held.size;
      if (slots === 0) {
        await this.#change();
        continue;
      }
      let pause = 0;
      const begin = Date.now();
      try {
        const answer = await this.#client.api.POST("/api/workers/claim", { body: { ...asked, slots }, signal: this.#asking.signal });
        const attempts = unwrap(answer)?.attempts ?? [];
        const ahead = Date.now() - Date.parse(answer.response.headers.get("Date") ?? "");
        const wrong = Math.abs(ahead) > 2_000 ? ahead : 0; // deadlines are in the gateway's time, and a Date has whole seconds
        attempts.forEach((attempt) => this.#start(attempt, Date.now() - wrong));
        const early = attempts.length === 0 && Date.now() - begin < wait / 2; // a stopping instance answers claims at once
        [failed, pause] = early ? [failed + 1, backoff(failed)] : [0, 0];
      } catch (error) {
        if (stop.aborted) {
          return;
        }
        if (!isTemporary(error) || this.#client.closed.aborted) {
          throw error;
        }
        this.#report(error);
        pause = Math.max(backoff(failed++), (error instanceof ApiError && error.retryAfterMs) || 0);
      }
      await sleep(pause, stop).catch(() => undefined);
    }
  }

  #start({ token, checkpoint: saved, ...claimed }: Schemas["WorkAttempt"], now: number): void {
    const abort = new AbortController();
    const checkpoint = new Checkpoint(saved, abort.signal, (number, value) => this.#save(held, number, value));
    const attempt = { ...claimed, checkpoint: checkpoint.own };
    const held: Held = { token, attempt, checkpoint, abort, lines: [], aliveAt: Date.now(), settling: false, lost: false };
    this.#held.add(held);
    void this.#attempt(held, Date.parse(attempt.deadline) - now).finally(() => {
      this.#held.delete(held);
      this.#wake();
    });
  }

  async #attempt(held: Held, left: number): Promise<void> {
    const { attempt, checkpoint, abort, lines } = held;
    const timer = setTimeout(() => this.#end(held, "deadline"), left);
    const context: AttemptContext = {
      signal: abort.signal,
      progress: (percent, message) => {
        const bounded = Math.round(Math.min(100, Math.max(0, percent))) || 0;
        held.progress = { percent: bounded, message: message && clean(message, 1000) };
      },
      log: (text, level = "info") => {
        if (lines.length < linesKept && !held.settling) {
          lines.push({ level, text: clean(text, 16_384) });
        }
      },
      save: (value) => checkpoint.save(value),
      step: (name, run) => checkpoint.step(name, run),
      sleep: (name, ms) => checkpoint.sleep(name, ms),
    };
    let result: Result;
    try {
      if (this.#stopping.signal.aborted) {
        this.#end(held, "stop"); // it arrived with the last response, and is given back
        abort.signal.throwIfAborted();
      }
      const output: unknown = await this.#handlers.get(attempt.jobType)!(attempt, context);
      JSON.stringify(output); // an output without a JSON form fails the attempt
      result = { status: "COMPLETED", output };
    } catch (error) {
      const aborted = abort.signal.aborted ? (abort.signal.reason as AttemptAborted).reason : undefined;
      if (error instanceof Outcome) {
        result = error.result;
      } else if (aborted === "stop") {
        result = { status: "SNOOZED", delayMs: 1 }; // it runs again, which costs no retry
      } else {
        result = { status: "FAILED", message: clean(error instanceof Error ? error.message : error, 4096) };
        if (aborted === "deadline") {
          result.errorCode = "WORKER.TIMEOUT";
        }
        if (!aborted) {
          this.#report(error, attempt);
        }
      }
    }
    clearTimeout(timer);
    if (!held.lost) {
      held.settling = true;
      await this.#settle(held, result);
    }
  }

  /** Sends a result, after its log, until it is stored or refused. */
  async #settle(held: Held, result: Result): Promise<void> {
    while ((held.progress || held.lines.length > 0) && (await this.#beat([held])));
    for (let failed = 0, replaced = false; !this.#ended.signal.aborted; ) {
      const body = { worker: this.name, results: [{ token: held.token, ...result }] };
      const { status, why } = await this.#send((signal) => this.#client.api.POST("/api/workers/settle", { body, signal }));
      if (status === 200) {
        return;
      }
      if (isPassing(status) && Date.now() - held.aliveAt < lostAfterMs) {
        await sleep(backoff(failed++), this.#ended.signal).catch(() => undefined);
      } else if ((status === 400 || status === 413) && !replaced) {
        result = { status: "FAILED", errorCode: "WORKER.INVALID_OUTPUT", message: clean(why, 4096), retryable: false };
        replaced = true;
      } else {
        return this.#report(new JobWeaverError(`a result was refused: ${status}: ${why}`), held.attempt);
      }
    }
  }

  /** Stores a checkpoint. It sends it again until there is an answer, or the attempt is over. */
  async #save(held: Held, number: number, checkpoint: unknown): Promise<void> {
    const body = { worker: this.name, checkpoints: [{ token: held.token, number, checkpoint }] };
    for (let failed = 0; !held.lost && !held.settling && !this.#ended.signal.aborted; failed++) {
      const { status, why } = await this.#send((signal) => this.#client.api.POST("/api/workers/checkpoint", { body, signal }));
      if (status === 200) {
        return;
      }
      if (status === 400) {
        throw new NotRetryable(`the checkpoint cannot be stored: ${why}`, { errorCode: "WORKER.INVALID_OUTPUT" });
      }
      if (status === 409) {
        this.#end(held, "lost");
      } else if (!isPassing(status)) {
        throw new JobWeaverError(`a checkpoint was refused: ${status}: ${why}`);
      } else {
        await sleep(backoff(failed), this.#ended.signal).catch(() => undefined);
      }
    }
    throw new AttemptAborted("lost");
  }

  async #send(request: (signal: AbortSignal) => Promise<Answered>): Promise<{ status: number; why: string }> {
    try {
      const settled = unwrap(await request(this.#within(20_000)));
      const { status, error } = settled.results[0]!;
      return { status, why: [error?.message, ...(error?.details.map((d) => `${d.path} ${d.message}`) ?? [])].join("; ") };
    } catch (error) {
      const unknown = this.#client.closed.aborted ? 0 : 503;
      return { status: error instanceof ApiError ? error.status : unknown, why: String(error) };
    }
  }

  async #beats(): Promise<void> {
    const every = this.#options.beatMs ?? 3_000;
    for (let failed = 0, pause = every; !this.#ended.signal.aborted; ) {
      await sleep(pause, this.#ended.signal).catch(() => undefined);
      const held = [...this.#held].filter((one) => !one.lost);
      const arrived = held.length === 0 || (await this.#beat(held));
      [failed, pause] = arrived ? [0, every] : [failed + 1, Math.min(backoff(failed), every)];
    }
  }

  /** One at a time, so that log lines keep their order. */
  #beat(all: Held[]): Promise<boolean> {
    const beat = this.#beating.then(() => this.#sendBeat(all));
    this.#beating = beat;
    return beat;
  }

  async #sendBeat(all: Held[]): Promise<boolean> {
    const sentAt = Date.now();
    let room = beatBytes;
    const fits = (part: object) => (room -= encoder.encode(JSON.stringify(part)).length + 1) >= 0;
    const parts = all.map((held) => {
      const progress = held.progress && fits(held.progress) ? held.progress : undefined;
      const full = held.lines.findIndex((line, i) => i === linesInBeat || !fits(line));
      return { held, progress, log: full < 0 ? [...held.lines] : held.lines.slice(0, full) };
    });
    const carried = () =>
      parts.forEach(({ held, progress, log }) => {
        held.lines.splice(0, log.length);
        held.progress = held.progress === progress ? undefined : held.progress;
      });
    try {
      const attempts = parts.map(({ held: { token }, progress, log }) => ({ token, progress, log }));
      const body = { worker: this.name, attempts };
      const beaten = unwrap(await this.#client.api.POST("/api/workers/beat", { body, signal: this.#within(5_000) }));
      carried();
      for (const held of all) {
        if (beaten.lost.includes(held.token)) {
          this.#end(held, "lost");
          continue;
        }
        held.aliveAt = sentAt;
        if (beaten.cancelled.includes(held.token)) {
          this.#end(held, "cancelled");
        }
      }
      return true;
    } catch (error) {
      if (!isTemporary(error)) {
        carried(); // a refused line must not stop the heartbeats
      }
      all.filter((held) => sentAt - held.aliveAt >= lostAfterMs).forEach((held) => this.#end(held, "lost"));
      if (!this.#ended.signal.aborted) {
        this.#report(error);
      }
      return false;
    }
  }

  #end(held: Held, reason: AbortReason): void {
    if (!held.settling) {
      held.lost ||= reason === "lost";
      held.abort.abort(new AttemptAborted(reason));
    }
  }

  #within(ms: number): AbortSignal {
    return AbortSignal.any([AbortSignal.timeout(ms), this.#ended.signal]);
  }

  /** Resolves when an attempt has ended, or another event happened that the caller waits for. */
  #change(): Promise<void> {
    return new Promise((resolve) => (this.#wake = resolve));
  }

  #report(error: unknown, attempt?: Attempt): void {
    const { onError = (...all: unknown[]) => console.error("jobweaver:", ...all) } = this.#options;
    queueMicrotask(() => (attempt ? onError(error, attempt) : onError(error))); // it may throw
  }
}

const encoder = new TextEncoder();

function isPassing(status: number): boolean {
  return status >= 500 || status === 429 || status === 408;
}

function isTemporary(error: unknown): boolean {
  return error instanceof ApiError ? isPassing(error.status) : error instanceof ConnectionError || error instanceof DOMException;
}
