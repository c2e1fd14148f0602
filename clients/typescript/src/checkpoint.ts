import { NotRetryable, Outcome, Snooze } from "./attempt.js";
import { JobWeaverError } from "./errors.js";
import { type Codec, jsonOf } from "./json.js";

/** A step that has ended, or a sleep, as it is kept for the later attempts of its job. */
export interface KeptStep {
  name: string;
  result?: unknown;
  /** The end of a sleep; null or absent: it is a step. */
  until?: string | null;
}

/** A step to be kept. Its result is JSON already. */
export interface NewStep {
  name: string;
  result?: string;
  until?: string;
  tookMs?: number;
}

/** Where the checkpoint and the steps of a job are kept. */
export interface Store {
  save(number: number, checkpoint: string): Promise<void>;
  /**
   * Keeps a step, and returns it. If the job has a step of its name already, nothing changes, and that one is returned: two attempts
   * may overlap, when one of them was taken for lost.
   */
  saveStep(step: NewStep): Promise<KeptStep>;
  /** The steps that earlier attempts have saved. */
  readSteps(): Promise<KeptStep[]>;
}

const maxBytes = 65_536; // of a checkpoint
const maxResult = 262_144; // bytes
const longestSnoozeMs = 30 * 86_400_000; // that the gateway accepts
const maxName = 200; // characters that the gateway accepts
const shownResult = 1_000; // characters of a result in the message of an error

/** The checkpoint of an attempt, and its steps, which are kept one by one. */
export class Checkpoint {
  #own: unknown;
  readonly #used = new Set<string>();
  readonly #running = new Set<Promise<unknown>>(); // steps, until their results are kept
  #closed = false; // no further step begins
  readonly #signal: AbortSignal;
  readonly #codec: Codec;
  readonly #store: Store;
  readonly #now: () => number;
  #number = 0;
  #saving: Promise<unknown> = Promise.resolve();
  #kept: Promise<ReadonlyMap<string, KeptStep>> | undefined; // by earlier attempts; undefined: not yet read

  constructor(saved: unknown, attempt: number, signal: AbortSignal, codec: Codec, store: Store, now: () => number = Date.now) {
    this.#own = saved ?? undefined;
    this.#signal = signal;
    this.#codec = codec;
    this.#store = store;
    this.#now = now;
    if (attempt === 1) {
      this.#kept = Promise.resolve(new Map());
    }
  }

  /** What was saved last; undefined if nothing. */
  get own(): unknown {
    return this.#own;
  }

  /** Stores a value. One save follows the other. */
  async save(value: unknown): Promise<void> {
    const checkpoint = jsonOf(value ?? null, "checkpoint", "the checkpoint", this.#codec);
    const bytes = size(checkpoint);
    if (bytes > maxBytes) {
      throw new NotRetryable(`the checkpoint has ${bytes} bytes, ${maxBytes} are allowed`, { errorCode: "WORKER.CHECKPOINT_TOO_LARGE" });
    }
    const saved = this.#saving.then(async () => {
      await this.#store.save(++this.#number, checkpoint);
      this.#own = this.#codec.parse(checkpoint) ?? undefined;
    });
    this.#saving = saved.catch(() => undefined);
    await saved;
  }

  /**
   * Lets no further step begin, and resolves when the results of those that run are kept. It is called after the handler has ended, and
   * before the attempt is settled: a handler may end while its steps run, and their results would be refused.
   */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all(this.#running);
  }

  async step<T>(name: string, run: () => T | Promise<T>): Promise<T> {
    if (this.#closed) {
      throw new JobWeaverError(`step ${name} does not run: the handler has ended`);
    }
    return this.awaited(this.#step(name, run));
  }

  /** Lets close() wait for a step, or for a save, and returns it. */
  awaited<T>(step: Promise<T>): Promise<T> {
    const over = step.catch(() => undefined).finally(() => this.#running.delete(over));
    this.#running.add(over);
    return step;
  }

  async #step<T>(name: string, run: () => T | Promise<T>): Promise<T> {
    const kept = (await this.#begin(name)) ?? (await this.#run(name, run));
    if (isSleep(kept)) {
      throw anotherKind(name);
    }
    return (kept.result ?? null) as T;
  }

  async sleep(name: string, ms: number): Promise<void> {
    let kept = await this.#begin(name);
    const now = this.#now(); // read once, so that the first snooze is as long as the sleep
    if (!kept) {
      if (ms <= 0) {
        return;
      }
      kept = await this.#store.saveStep({ name, until: new Date(now + ms).toISOString() });
    }
    if (!isSleep(kept)) {
      throw anotherKind(name);
    }
    const left = Date.parse(kept.until) - now;
    if (left > 0) {
      throw new Snooze(Math.min(left, longestSnoozeMs));
    }
  }

  /**
   * Takes a name for something that is kept elsewhere than with the steps: no step of the attempt may have it. It refuses a name that
   * the gateway would refuse only after the step has run.
   */
  use(name: string): void {
    this.#signal.throwIfAborted();
    const wrong = nameFlaw(name);
    if (wrong !== undefined) {
      const shown = JSON.stringify(name.slice(0, maxName));
      throw new NotRetryable(`the name of a step, sleep or wait ${wrong}: ${shown}`, { errorCode: "API.INVALID_JOB_REQUEST" });
    }
    if (this.#used.has(name)) {
      throw repeated(`the attempt has two steps of the name ${name}`);
    }
    this.#used.add(name);
  }

  /** Takes the name of a step, and returns the step of this name that an earlier attempt has saved. */
  async #begin(name: string): Promise<KeptStep | undefined> {
    this.use(name);
    this.#kept ??= this.#store.readSteps().then((all) => new Map(all.map((step) => [step.name, step])));
    let kept: ReadonlyMap<string, KeptStep>;
    try {
      kept = await this.#kept;
    } catch (error) {
      this.#kept = undefined; // the next step reads again
      this.#used.delete(name);
      throw error;
    }
    this.#signal.throwIfAborted();
    return kept.get(name);
  }

  /** Runs a step for which there is no result, and keeps its result. */
  async #run<T>(name: string, run: () => T | Promise<T>): Promise<KeptStep> {
    const begin = performance.now();
    let value: T;
    try {
      value = await run();
    } catch (error) {
      this.#used.delete(name); // the handler may try it again
      throw error;
    }
    const tookMs = Math.round(performance.now() - begin);
    const result = jsonOf(value ?? null, "result", `the result of step ${name}`, this.#codec);
    const bytes = size(result);
    const unkept = (why: string, errorCode?: string) => {
      const what = `step ${name} has run, and its result of ${bytes} bytes cannot be kept: ${why}`;
      return new NotRetryable(`${what}; the result begins with ${result.slice(0, shownResult)}`, { errorCode });
    };
    if (bytes > maxResult) {
      throw unkept(`${maxResult} bytes are allowed`, "WORKER.OUTPUT_TOO_LARGE");
    }
    try {
      return await this.#store.saveStep({ name, result, tookMs });
    } catch (error) {
      throw error instanceof Outcome ? unkept(error.message, error.result.errorCode ?? undefined) : error;
    }
  }
}

function nameFlaw(name: string): string | undefined {
  if (name === "") {
    return "must not be empty";
  }
  if ([...name].length > maxName) {
    return `must have at most ${maxName} characters`;
  }
  return /[\p{Cc}\p{Cs}]/u.test(name) ? "must contain neither control characters nor half of a surrogate pair" : undefined;
}

function isSleep(step: KeptStep): step is KeptStep & { until: string } {
  return typeof step.until === "string";
}

function size(json: string): number {
  return new TextEncoder().encode(json).length;
}

function repeated(message: string): NotRetryable {
  return new NotRetryable(message, { errorCode: "WORKER.STEP_REPEATED" });
}

function anotherKind(name: string): NotRetryable {
  return repeated(`${name} is a step in one attempt of the job and a sleep in another: give one of them another name`);
}
