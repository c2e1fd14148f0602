// A test kit: one job, whose attempts a test runs one after another, without a gateway.
import { type Attempt, type AttemptContext, clean, type Handler, Outcome, percentOf, type Result } from "./attempt.js";
import { Checkpoint, type KeptStep, type NewStep } from "./checkpoint.js";
import { codecOf } from "./json.js";
import type { AnyTask } from "./task.js";
import { type TestEvent, TestWaits } from "./testwaits.js";
import { lasting } from "./waits.js";

export type { TestEvent } from "./testwaits.js";

/** What one attempt has done. */
export interface Ran {
  /** From 1. */
  attempt: number;
  output?: unknown;
  /** What the handler has thrown, unless the attempt was snoozed or waits. */
  error?: unknown;
  /** The job runs again after this time. */
  snoozeMs?: number;
  /** An outside system must call back within this time. */
  waitMs?: number;
  /** It ended as if its process had been killed. */
  died: boolean;
  /** The checkpoints that it has stored. */
  saves: unknown[];
  /** The steps and sleeps that it has stored. */
  steps: TestStep[];
  /** Its lines, such as "info charged". */
  log: string[];
  /** Such as "40% half of it". */
  progress: string[];
}

/** A step that attempts of a job have stored, or a sleep. */
export interface TestStep {
  name: string;
  /** What the step has returned; a sleep has none. */
  result?: unknown;
  /** The end of a sleep. */
  until?: string;
}

const died = Symbol("died");

/** A job between its attempts. Its clock moves only by a snooze that run() passes. */
export class TestJob {
  readonly jobId = crypto.randomUUID();
  /** How many attempts have begun. */
  attempts = 0;
  /** The checkpoint; undefined: none. */
  saved: unknown;
  /** The steps and sleeps that its attempts have stored, in their order. */
  steps: TestStep[] = [];
  /** The next attempt ends as if its process were killed, right before its n-th save (of a checkpoint, step or sleep) is stored, or right after. */
  dieBeforeSave = 0;
  dieAfterSave = 0;
  /** What its attempts take for the present. */
  now = Date.now();
  /** Events that have come: the handler gets each of them once, the first that fits. */
  events: TestEvent[] = [];
  /** What the calls of the handler return, or throw, by the type of the task. A call of another type does not end. */
  calls: Record<string, (payload: any) => unknown> = {};
  readonly #waits = new TestWaits(this);

  /** Runs the next attempt with a task, or with a handler. */
  async next(handler: AnyTask | Handler<any>, payload: unknown): Promise<Ran> {
    const ran: Ran = { attempt: ++this.attempts, died: false, saves: [], steps: [], log: [], progress: [] };
    const { dieBeforeSave, dieAfterSave } = this;
    this.dieBeforeSave = this.dieAfterSave = 0;
    const codec = codecOf("double");
    const abort = new AbortController();
    let over = () => {};
    const killed = new Promise<typeof died>((resolve) => (over = () => resolve(died)));
    let saves = 0;
    const save = async <T>(store: () => T): Promise<T> => {
      const n = ++saves;
      const stored = n === dieBeforeSave ? undefined : store();
      if (n === dieBeforeSave || n === dieAfterSave) {
        ran.died = true;
        abort.abort();
        over();
        await new Promise(() => {}); // a killed process does not go on
      }
      return stored as T;
    };
    const store = {
      save: (_number: number, checkpoint: string) =>
        save(() => {
          this.saved = codec.parse(checkpoint);
          ran.saves.push(this.saved);
        }),
      saveStep: ({ name, result, until }: NewStep) =>
        save((): KeptStep => {
          const known = this.steps.find((step) => step.name === name);
          if (known) {
            return structuredClone(known);
          }
          const step = { name, ...(result === undefined ? {} : { result: codec.parse(result) }), ...(until === undefined ? {} : { until }) };
          this.steps.push(step);
          ran.steps.push(structuredClone(step));
          return structuredClone(step);
        }),
      readSteps: async () => structuredClone(this.steps),
    };
    const checkpoint = new Checkpoint(this.saved, this.attempts, abort.signal, codec, store, () => this.now);
    const context: AttemptContext = {
      signal: abort.signal,
      progress: (percent, message = "") => void ran.progress.push(`${percentOf(percent)}% ${clean(message, 1000)}`),
      log: (text, level = "info") => void ran.log.push(`${level} ${clean(text, 16_384)}`),
      ...lasting(checkpoint, (waits) => this.#waits.ask(waits)),
    };
    const attempt = this.#attempt(handler, payload, checkpoint.own);
    const call = async () => (typeof handler === "function" ? handler(attempt, context) : handler.handle(attempt, context));
    try {
      const output = await Promise.race([call().finally(() => checkpoint.close()), killed]);
      return output === died ? ran : { ...ran, output };
    } catch (error) {
      return { ...ran, ...outcomeOf(error) };
    }
  }

  /** Runs attempts until one is neither snoozed nor dead. Each snooze passes at once: what has not come by its end comes no more. */
  async run(handler: AnyTask | Handler<any>, payload: unknown): Promise<Ran> {
    for (;;) {
      const ran = await this.next(handler, payload);
      if (ran.snoozeMs === undefined && !ran.died) {
        return ran;
      }
      this.now += ran.snoozeMs ?? 0;
    }
  }

  #attempt(handler: AnyTask | Handler<any>, payload: unknown, checkpoint: unknown): Attempt {
    const ids = { jobId: this.jobId, traceId: this.jobId, ownerId: null, tags: [], callback: null };
    const jobType = typeof handler === "function" ? "TEST" : handler.type;
    const deadline = new Date(this.now + 600_000).toISOString();
    return { ...ids, attempt: this.attempts, jobType, queue: "pull", payload: structuredClone(payload), deadline, checkpoint };
  }
}

function outcomeOf(error: unknown): Partial<Ran> {
  const result: Partial<Result> = error instanceof Outcome ? error.result : {};
  switch (result.status) {
    case "SNOOZED":
      return { snoozeMs: result.delayMs ?? undefined };
    case "WAITING":
      return { waitMs: result.callbackTimeoutMs ?? undefined };
    default:
      return { error };
  }
}
