import type { AbortReason, Attempt, AttemptContext, BlockingHandler, Handler, Level, Result, WorkerOptions } from "./attempt.js";
import { AttemptAborted, clean, NotRetryable, Outcome, percentOf } from "./attempt.js";
import { Threads } from "./blocking.js";
import { Checkpoint, type KeptStep, type Store } from "./checkpoint.js";
import { type AnyJobTypes, JobWeaver } from "./client.js";
import { describe } from "./describe.js";
import { ApiError, ConnectionError, JobWeaverError, unwrap } from "./errors.js";
import { jsonOf } from "./json.js";
import { Line } from "./line.js";
import { bounded, jsonOfResult } from "./result.js";
import type { components } from "./schema.gen.js";
import { type Answer, Together } from "./together.js";
import { backoff, sleep } from "./transport.js";
import { lasting, type WorkWait, type WorkWaitAnswer } from "./waits.js";

type Schemas = components["schemas"];

/** An attempt of the worker, from its claim until its result is stored or the attempt is lost. */
interface Held {
  readonly token: string;
  readonly attempt: Attempt;
  readonly checkpoint: Checkpoint;
  readonly store: Store;
  readonly abort: AbortController;
  readonly lost: AbortController;
  readonly lines: { level: Level; text: string }[]; // not yet sent in a heartbeat
  progress?: { percent: number; message?: string };
  aliveAt: number; // when the last answered heartbeat was sent
  overAt?: number; // when its handler was first to end
  settling: boolean;
}

type Handling = (held: Held, context: AttemptContext) => Promise<string | undefined>;

const holdMs = 10_000; // of a claim: only its end shows that the gateway stands still
const lateMs = 10_000; // for the answer after that
const lostAfterMs = 10_000; // without an answered heartbeat; 5 s later the next attempt may start
const lastAnswerMs = 500; // for the response to the open claim when the worker stops
const stillMs = 2_000; // of the event loop; then the thread sends heartbeats
const warnedMs = 3_000; // likewise; then a warning names the handler
const tickMs = 500;
const linesKept = 1_000; // of one attempt, while heartbeats fail
const linesInHeartbeat = 200; // of one attempt
const heartbeatBytes = 800_000; // of progress and lines; with the tokens a heartbeat stays below its limit

/** Claims attempts, runs their handlers and settles them, until it is stopped. */
export class Worker<Types extends object = AnyJobTypes> {
  readonly name: string;
  readonly #client: JobWeaver<Types>;
  readonly #options: WorkerOptions<Types>;
  readonly #handlers: Map<string, Handling>;
  readonly #threads: Threads[] = [];
  readonly #concurrency: number;
  readonly #held = new Set<Held>();
  readonly #running = new Map<string, Held>(); // by job, while its handler runs
  readonly #blockers = new Set<string>(); // job types of which the user was warned
  readonly #line: Line | undefined;
  readonly #api: JobWeaver["api"];
  readonly #settling = new Together((entries) => this.#send("settle", "results", entries));
  readonly #saving = new Together((entries) => this.#send("checkpoint", "checkpoints", entries));
  readonly #stopping = new AbortController();
  readonly #asking = new AbortController(); // aborts the open claim when the worker stops
  readonly #ended = new AbortController();
  #wake = () => {}; // ends #change()
  #sending: Promise<unknown> = Promise.resolve();
  #run: Promise<void> | undefined;
  #described = () => {}; // resolves #ready
  readonly #ready = new Promise<void>((resolve) => (this.#described = resolve));

  constructor(client: JobWeaver<Types>, options: WorkerOptions<Types>) {
    this.#client = client;
    this.#options = options;
    const handlers = Object.entries(options.handlers ?? {}) as [string, Handler | BlockingHandler][];
    const { tasks = [] } = options;
    const both = [...handlers, ...tasks.map((task): [string, Handler] => [task.type, (attempt, context) => task.handle(attempt, context)])];
    this.#handlers = new Map(both.map(([type, handler]) => [type, this.#handling(type, handler)]));
    const idle = tasks.find((task) => !task.runs);
    if (idle) {
      throw new TypeError(`the task ${idle.type} has no function to run`);
    }
    if (this.#handlers.size < both.length) {
      throw new TypeError("two handlers are of the same job type");
    }
    this.#concurrency = options.concurrency ?? 10;
    if (this.#handlers.size === 0) {
      throw new RangeError("a worker needs a handler");
    }
    if (!Number.isInteger(this.#concurrency) || this.#concurrency < 1 || this.#concurrency > 500) {
      throw new RangeError("concurrency must be a whole number from 1 to 500");
    }
    const host = typeof process === "undefined" ? undefined : process.env.HOSTNAME;
    this.name = options.name ?? `${host?.slice(0, 100) || "typescript"}-${crypto.randomUUID().slice(0, 8)}`;
    const { options: own, url, headers } = client.settings;
    if (own.fetch) {
      this.#api = client.api; // a thread cannot have the function
    } else {
      const keeping = { url, headers: [...headers], worker: this.name, heartbeatMs: options.heartbeatMs ?? 3_000, stillMs };
      this.#line = new Line(keeping, ({ answer, tokens, sentAt }) => {
        this.#answer([...this.#held].filter(({ token }) => tokens.includes(token)), answer, sentAt);
      });
      const within = new JobWeaver({ ...own, fetch: this.#line.fetch });
      client.closed.addEventListener("abort", () => within.close());
      this.#api = within.api;
    }
  }

  /** Runs attempts until stop() is called. It throws if the gateway refuses claims of this worker. */
  run(): Promise<void> {
    return (this.#run ??= this.#work());
  }

  /**
   * Runs attempts like run(), and resolves when the gateway knows the tasks of this worker, so that their jobs are accepted. It
   * throws what run() throws before; await run() to know why the worker ends later.
   */
  ready(): Promise<void> {
    return Promise.race([this.#ready, this.run()]);
  }

  /** Claims nothing more, gives running handlers the grace period to end, and resolves when run() does: after the last handler. */
  async stop(): Promise<void> {
    if (!this.#stopping.signal.aborted) {
      this.#stopping.abort();
      setTimeout(() => this.#asking.abort(), lastAnswerMs).unref?.();
      this.#wake();
    }
    await this.#run?.catch(() => undefined); // run() throws it
  }

  async #work(): Promise<void> {
    await this.#line?.start((error) => this.#report(new JobWeaverError(`heartbeats have no thread: ${String(error)}`)));
    const heartbeats = this.#heartbeats();
    const ticks = this.#watch();
    try {
      for (const task of this.#options.tasks ?? []) {
        await this.#persist((signal) => describe(this.#api, task, signal));
      }
      this.#described();
      await this.#claims();
    } finally {
      const stop = () => this.#held.forEach((held) => this.#end(held, "stop"));
      const grace = setTimeout(stop, this.#options.graceMs ?? 25_000);
      while (this.#held.size > 0) {
        await this.#change(); // while a handler runs, its attempt must not start elsewhere
      }
      clearTimeout(grace);
      this.#ended.abort();
      await heartbeats;
      clearInterval(ticks);
      await Promise.all([this.#line?.close(), ...this.#threads.map((threads) => threads.close())]);
    }
  }

  /** Sends a request until it is answered. It throws what will not pass, and returns nothing when the worker stops. */
  async #persist<T>(send: (signal: AbortSignal) => Promise<T>): Promise<T | undefined> {
    const stop = this.#stopping.signal;
    for (let failed = 0; !stop.aborted; failed++) {
      try {
        return await send(this.#asking.signal);
      } catch (error) {
        if (stop.aborted) {
          break;
        }
        if (!isTemporary(error) || this.#client.closed.aborted) {
          throw error;
        }
        this.#report(error);
        await sleep(Math.max(backoff(failed), (error instanceof ApiError && error.retryAfterMs) || 0), stop).catch(() => undefined);
      }
    }
    return undefined;
  }

  async #claims(): Promise<void> {
    const stop = this.#stopping.signal;
    const wait = Math.min(holdMs, Math.floor(this.#client.timeoutMs / 2));
    const asked = { worker: this.name, types: [...this.#handlers.keys()], queues: this.#options.queues, wait: `${wait}ms` };
    for (let early = 0; !stop.aborted; ) {
      if (this.#held.size === this.#concurrency) {
        await this.#change();
        continue;
      }
      let begin = 0;
      const answer = await this.#persist(async (signal) => {
        begin = Date.now();
        const body = { ...asked, slots: this.#concurrency - this.#held.size };
        const within = AbortSignal.any([signal, AbortSignal.timeout(wait + lateMs)]);
        const claimed = await this.#api.POST("/api/workers/claim", { body, signal: within });
        return { attempts: unwrap(claimed)?.attempts ?? [], date: claimed.response.headers.get("Date") ?? "" };
      });
      if (!answer) {
        return;
      }
      const ahead = Date.now() - Date.parse(answer.date);
      const wrong = Math.abs(ahead) > 2_000 ? ahead : 0; // deadlines are in the gateway's time, and a Date has whole seconds
      answer.attempts.forEach((attempt) => this.#start(attempt, Date.now() - wrong));
      const atOnce = answer.attempts.length === 0 && Date.now() - begin < wait / 2; // as a stopping instance answers
      // Without a pause further claims would ask for the first slot that is free, one after another.
      await sleep(atOnce ? backoff(early) : 0, stop).catch(() => undefined);
      early = atOnce ? early + 1 : 0;
    }
  }

  #start({ token, checkpoint: saved, ...claimed }: Schemas["WorkAttempt"], now: number): void {
    const abort = new AbortController();
    const lost = new AbortController();
    const store: Store = {
      save: (number, value) => this.#save(held, number, value),
      saveStep: async ({ name, result, until, tookMs }) => {
        const members = JSON.stringify({ name, until, tookMs }).slice(1, -1);
        return (await this.#post(held, "steps", result === undefined ? members : `${members},"result":${result}`)) as KeptStep;
      },
      readSteps: () => this.#steps(held),
    };
    const checkpoint = new Checkpoint(saved, claimed.attempt, abort.signal, this.#client.codec, store);
    const attempt = { ...claimed, checkpoint: checkpoint.own };
    const held: Held = { token, attempt, checkpoint, store, abort, lost, lines: [], aliveAt: Date.now(), settling: false };
    this.#held.add(held);
    void this.#attempt(held, Date.parse(attempt.deadline) - now).finally(() => {
      this.#held.delete(held);
      this.#line?.over(token);
      this.#wake();
    });
  }

  async #attempt(held: Held, left: number): Promise<void> {
    const { checkpoint, abort, lines } = held;
    const timer = setTimeout(() => this.#end(held, "deadline"), left);
    const context: AttemptContext = {
      signal: abort.signal,
      progress: (percent, message) => {
        held.progress = { percent: percentOf(percent), message: message && clean(message, 1000) };
      },
      log: (text, level = "info") => {
        if (lines.length < linesKept && !held.settling) {
          lines.push({ level, text: clean(text, 16_384) });
        }
      },
      ...lasting(checkpoint, (waits) => this.#ask(held, waits)),
    };
    const result = await this.#resultOf(held, context);
    clearTimeout(timer);
    if (!held.lost.signal.aborted) {
      held.settling = true;
      await this.#settle(held, result);
    }
  }

  /** Runs the handler, and returns the result as JSON without the token. */
  async #resultOf(held: Held, context: AttemptContext): Promise<string> {
    const { attempt, abort } = held;
    const other = this.#running.get(attempt.jobId);
    if (other) {
      context.log(`${this.name} still runs attempt ${other.attempt.attempt} of this job: this one is given back`, "warn");
      const delayMs = Math.min(30_000, Math.max(1_000, Date.now() - (other.overAt ?? Date.now())));
      return jsonOfResult({ status: "SNOOZED", delayMs }); // no retry is counted
    }
    this.#running.set(attempt.jobId, held);
    try {
      if (this.#stopping.signal.aborted) {
        this.#end(held, "stop"); // it arrived with the last response, and is given back
        abort.signal.throwIfAborted();
      }
      const output = await this.#handlers.get(attempt.jobType)!(held, context);
      return output === undefined ? jsonOfResult({ status: "COMPLETED" }) : `"status":"COMPLETED","output":${bounded(output)}`;
    } catch (error) {
      return jsonOfResult(this.#failed(held, error));
    } finally {
      await Promise.race([held.checkpoint.close(), aborted(held.lost.signal)]);
      this.#running.delete(attempt.jobId);
    }
  }

  #failed({ attempt, abort }: Held, error: unknown): Result {
    const aborted = abort.signal.aborted ? (abort.signal.reason as AttemptAborted).reason : undefined;
    if (error instanceof Outcome) {
      return error.result;
    }
    if (aborted === "stop") {
      return { status: "SNOOZED", delayMs: 1 }; // it runs again, which costs no retry
    }
    if (!aborted) {
      this.#report(error, attempt);
    }
    const errorCode = aborted === "deadline" ? "WORKER.TIMEOUT" : undefined;
    return { status: "FAILED", message: clean(error instanceof Error ? error.message : error, 4096), errorCode };
  }

  /** Returns a function that runs a handler, and returns the output as JSON. */
  #handling(type: string, handler: Handler | BlockingHandler): Handling {
    const { codec } = this.#client;
    if (typeof handler === "function") {
      return async ({ attempt }, context) => {
        const begin = performance.now();
        const running = handler(attempt, context);
        this.#warn(performance.now() - begin, [type]);
        const output: unknown = await running;
        return output === undefined ? undefined : jsonOf(output, "output", "the output", codec);
      };
    }
    const threads = new Threads(handler.module);
    this.#threads.push(threads);
    return async (held, context) => {
      const { attempt, checkpoint } = held;
      // The thread may be terminated while the result of a step is being saved.
      const store: Store = { ...held.store, saveStep: (step) => checkpoint.awaited(held.store.saveStep(step)) };
      const ask = (waits: WorkWait[]) => this.#ask(held, waits);
      return (await threads.run({ attempt, context, codec, store, ask })) || undefined;
    };
  }

  /** Watches whether the event loop turns. */
  #watch(): ReturnType<typeof setInterval> {
    let last = performance.now();
    return setInterval(() => {
      const now = performance.now();
      const still = now - last - tickMs;
      last = now;
      this.#warn(still, [...new Set([...this.#held].map(({ attempt }) => attempt.jobType))]);
    }, tickMs);
  }

  #warn(still: number, types: string[]): void {
    if (still < warnedMs || types.length === 0 || types.some((type) => this.#blockers.has(type))) {
      return;
    }
    types.forEach((type) => this.#blockers.add(type));
    const who = types.length === 1 ? `the handler of ${types[0]}` : `handlers of ${types.join(", ")} ran, one of which`;
    const what = `the event loop stood still for ${Math.round(still / 1000)} s: ${who} blocks it`;
    this.#report(new JobWeaverError(`${what}; give it a thread of its own with blocking: true`));
  }

  /** Sends a result, after its log, until it is stored or refused. */
  async #settle(held: Held, given: string): Promise<void> {
    while (hasNews(held) && (await this.#heartbeat(() => this.#alive(), held)));
    let result = given;
    for (let failed = 0, replaced = false; !this.#ended.signal.aborted; ) {
      const { status, why } = await this.#settling.add(`{"token":${JSON.stringify(held.token)},${result}}`);
      if (status === 200) {
        return;
      }
      if (isPassing(status) && Date.now() - held.aliveAt < lostAfterMs) {
        await sleep(backoff(failed++), this.#ended.signal).catch(() => undefined);
      } else if ((status === 400 || status === 413) && !replaced) {
        const errorCode = "WORKER.INVALID_OUTPUT";
        result = jsonOfResult({ status: "FAILED", errorCode, message: clean(why, 4096), retryable: false });
        replaced = true;
      } else {
        return this.#report(new JobWeaverError(`a result was refused: ${status}: ${why}`), held.attempt);
      }
    }
  }

  /** Stores a checkpoint. It sends it again until there is an answer, or the attempt is over. */
  async #save(held: Held, number: number, checkpoint: string): Promise<void> {
    const entry = `{"token":${JSON.stringify(held.token)},"number":${number},"checkpoint":${checkpoint}}`;
    for (let failed = 0; !held.lost.signal.aborted && !held.settling && !this.#ended.signal.aborted; failed++) {
      const { status, why } = await this.#saving.add(entry);
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

  /** Reads the steps that earlier attempts have saved, page by page. */
  async #steps(held: Held): Promise<KeptStep[]> {
    const all: KeptStep[] = [];
    for (let after: string | null = null; ; ) {
      const page = (await this.#post(held, "steps/read", `"after":${JSON.stringify(after)}`)) as { steps: KeptStep[]; next: string | null };
      all.push(...page.steps);
      if (page.next === null) {
        return all;
      }
      after = page.next;
    }
  }

  async #ask(held: Held, waits: WorkWait[]): Promise<WorkWaitAnswer> {
    return (await this.#post(held, "wait", `"waits":${this.#client.codec.stringify(waits)}`)) as WorkWaitAnswer;
  }

  /** Sends members about an attempt, which are JSON already. It sends them again until there is an answer, or the attempt is over. */
  async #post(held: Held, path: "wait" | "steps" | "steps/read", members: string): Promise<unknown> {
    const body = `{"worker":${JSON.stringify(this.name)},"token":${JSON.stringify(held.token)},${members}}`;
    for (let failed = 0; !held.lost.signal.aborted && !held.settling && !this.#ended.signal.aborted; failed++) {
      try {
        const raw = { body: body as never, bodySerializer: (text: unknown) => text, signal: this.#within(20_000) };
        return unwrap(await this.#api.POST(`/api/workers/${path}`, raw));
      } catch (error) {
        if (error instanceof ApiError && error.errorCode === "API.ATTEMPT_OVER") {
          this.#end(held, "lost");
        } else if (isTemporary(error)) {
          await sleep(backoff(failed), this.#ended.signal).catch(() => undefined);
        } else {
          const errorCode = error instanceof ApiError ? error.errorCode : undefined;
          throw new NotRetryable(String(error), { errorCode, cause: error });
        }
      }
    }
    throw new AttemptAborted("lost");
  }

  /** Sends results or checkpoints, which are JSON already, and returns an answer for each. */
  async #send(path: "settle" | "checkpoint", name: string, entries: string[]): Promise<Answer[]> {
    const body = `{"worker":${JSON.stringify(this.name)},"${name}":[${entries.join(",")}]}`;
    const raw = { body: body as never, bodySerializer: (text: unknown) => text, signal: this.#within(20_000) };
    try {
      const { results } = unwrap(await this.#api.POST(`/api/workers/${path}`, raw));
      return entries.map((_, i) => {
        const { status, error } = results[i]!;
        const details = error?.details.map((d) => `${d.path} ${d.message}`).filter((d) => !error.message.includes(d)) ?? [];
        return { status, why: [error?.message, ...details].join("; ") };
      });
    } catch (error) {
      const unknown = this.#client.closed.aborted ? 0 : 503;
      const answer = { status: error instanceof ApiError ? error.status : unknown, why: String(error) };
      return entries.map(() => answer);
    }
  }

  #alive(): Held[] {
    return [...this.#held].filter((one) => !one.lost.signal.aborted);
  }

  async #heartbeats(): Promise<void> {
    const every = this.#options.heartbeatMs ?? 3_000;
    for (let failed = 0, pause = every; !this.#ended.signal.aborted; ) {
      await sleep(pause, this.#ended.signal).catch(() => undefined);
      const arrived = await this.#heartbeat(() => this.#alive());
      [failed, pause] = arrived ? [0, every] : [failed + 1, Math.min(backoff(failed), every)];
    }
  }

  /** One at a time, so that log lines keep their order. With only, it does nothing unless that attempt has news by then. */
  #heartbeat(all: () => Held[], only?: Held): Promise<boolean> {
    const heartbeat = this.#sending.then(() => {
      const now = all();
      return now.length === 0 || (only && !hasNews(only)) || this.#sendHeartbeat(now);
    });
    this.#sending = heartbeat;
    return heartbeat;
  }

  async #sendHeartbeat(all: Held[]): Promise<boolean> {
    const sentAt = Date.now();
    let room = heartbeatBytes;
    const fits = (part: object) => (room -= encoder.encode(JSON.stringify(part)).length + 1) >= 0;
    const parts = all.map((held) => {
      const progress = held.progress && fits(held.progress) ? held.progress : undefined;
      const full = held.lines.findIndex((line, i) => i === linesInHeartbeat || !fits(line));
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
      const answer = unwrap(await this.#api.POST("/api/workers/heartbeat", { body, signal: this.#within(5_000) }));
      carried();
      this.#answer(all, answer, sentAt);
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

  #answer(all: Held[], { lost, cancelled }: Schemas["WorkHeartbeatAnswer"], sentAt: number): void {
    for (const held of all) {
      if (lost.includes(held.token)) {
        this.#end(held, "lost");
        continue;
      }
      held.aliveAt = Math.max(held.aliveAt, sentAt);
      if (cancelled.includes(held.token)) {
        this.#end(held, "cancelled");
      }
    }
  }

  #end(held: Held, reason: AbortReason): void {
    if (!held.settling) {
      if (reason === "lost") {
        held.lost.abort();
      }
      held.overAt ??= Date.now();
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

/** Resolves when a signal is aborted. */
function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => (signal.aborted ? resolve() : signal.addEventListener("abort", () => resolve(), { once: true })));
}

function hasNews({ progress, lines }: Held): boolean {
  return progress !== undefined || lines.length > 0;
}

function isPassing(status: number): boolean {
  return status >= 500 || status === 429 || status === 408;
}

function isTemporary(error: unknown): boolean {
  return error instanceof ApiError ? isPassing(error.status) : error instanceof ConnectionError || error instanceof DOMException;
}
