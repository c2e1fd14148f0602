import { NotRetryable, Snooze } from "./attempt.js";
import { type Codec, jsonOf } from "./json.js";

/** A step that has ended, or a sleep. */
type Step = { result: unknown } | { wakeAt: string };

const maxBytes = 65_536;
const longestSnoozeMs = 30 * 86_400_000; // that the gateway accepts
const shownResult = 1_000; // characters of a result in the message of an error

/**
 * The checkpoint of an attempt: the handler's own part, and its steps. With steps it is stored as
 * {"$steps": {name: {result} or {wakeAt}}, "$data": own part}, in all languages.
 */
export class Checkpoint {
  #own: unknown;
  #steps: ReadonlyMap<string, Step> = new Map();
  readonly #used = new Set<string>();
  readonly #signal: AbortSignal;
  readonly #codec: Codec;
  readonly #store: (number: number, checkpoint: string) => Promise<void>;
  #number = 0;
  #saving: Promise<unknown> = Promise.resolve();

  constructor(
    saved: unknown,
    signal: AbortSignal,
    codec: Codec,
    store: (number: number, checkpoint: string) => Promise<void>,
    private readonly now: () => number = Date.now,
  ) {
    this.#own = saved ?? undefined;
    this.#signal = signal;
    this.#codec = codec;
    this.#store = store;
    if (hasSteps(saved)) {
      this.#own = saved.$data ?? undefined;
      this.#steps = new Map(Object.entries(saved.$steps));
    }
  }

  /** What was saved last; undefined if nothing. */
  get own(): unknown {
    return this.#own;
  }

  async save(value: unknown): Promise<void> {
    const own = this.#throughJson(value, "checkpoint", "the checkpoint");
    await this.#change(() => (this.#own = own ?? undefined));
  }

  async step<T>(name: string, run: () => T | Promise<T>): Promise<T> {
    const known = this.#begin(name);
    if (known && "result" in known) {
      return known.result as T;
    }
    const none = size(this.#codec.stringify(whole(this.#own, new Map([...this.#steps, [name, { result: null }]]))));
    if (none > maxBytes) {
      throw tooLarge(`step ${name} does not run`, none);
    }
    let value: T;
    try {
      value = await run();
    } catch (error) {
      this.#used.delete(name); // the handler may try it again
      throw error;
    }
    const result = this.#throughJson(value, "result", `the result of step ${name}`);
    await this.#remember(name, { result }, () => {
      const text = this.#codec.stringify(result);
      return `step ${name} has run, and its result of ${text.length} characters cannot be remembered; it begins with ${text.slice(0, shownResult)}`;
    });
    return result as T;
  }

  async sleep(name: string, ms: number): Promise<void> {
    const known = this.#begin(name);
    const now = this.now(); // read once, so that the first snooze is as long as the sleep
    const wakeAt = known && "wakeAt" in known ? known.wakeAt : new Date(now + ms).toISOString();
    const left = Date.parse(wakeAt) - now;
    if (left > 0) {
      await this.#remember(name, { wakeAt }); // also a known one: a checkpoint is kept for a time after its last save
      throw new Snooze(Math.min(left, longestSnoozeMs));
    }
  }

  /** Takes a name for something that is remembered elsewhere: no step of the attempt may have it. */
  use(name: string): void {
    this.#begin(name);
  }

  #begin(name: string): Step | undefined {
    this.#signal.throwIfAborted();
    if (this.#used.has(name)) {
      throw new NotRetryable(`the attempt has two steps of the name ${name}`, { errorCode: "WORKER.STEP_REPEATED" });
    }
    this.#used.add(name);
    return this.#steps.get(name);
  }

  #remember(name: string, step: Step, what = () => `sleep ${name}`): Promise<void> {
    return this.#change(() => (this.#steps = new Map([...this.#steps, [name, step]])), what);
  }

  /** Changes the checkpoint and stores it, one change after another. After an error it is as before. */
  #change(change: () => unknown, what = () => "the checkpoint is not saved"): Promise<void> {
    const saved = this.#saving.then(async () => {
      const before = [this.#own, this.#steps] as const;
      change();
      try {
        const checkpoint = this.#codec.stringify(whole(this.#own, this.#steps));
        const bytes = size(checkpoint);
        if (bytes > maxBytes) {
          throw tooLarge(what(), bytes);
        }
        await this.#store(++this.#number, checkpoint);
      } catch (error) {
        [this.#own, this.#steps] = before;
        throw error;
      }
    });
    this.#saving = saved.catch(() => undefined);
    return saved;
  }

  /** A value as it comes back from a checkpoint, so that an attempt does not get what the next one does not. */
  #throughJson(value: unknown, name: string, what: string): unknown {
    return this.#codec.parse(jsonOf(value ?? null, name, what, this.#codec));
  }
}

function hasSteps(value: unknown): value is { $steps: Record<string, Step>; $data?: unknown } {
  return typeof value === "object" && value !== null && "$steps" in value && typeof value.$steps === "object" && value.$steps !== null;
}

function whole(own: unknown, steps: ReadonlyMap<string, Step>): unknown {
  if (steps.size === 0 && !hasSteps(own)) {
    return own ?? null;
  }
  return { $steps: Object.fromEntries(steps), ...(own === undefined ? {} : { $data: own }) };
}

function size(checkpoint: string): number {
  return new TextEncoder().encode(checkpoint).length;
}

function tooLarge(what: string, bytes: number): NotRetryable {
  return new NotRetryable(`${what}: the checkpoint has ${bytes} bytes, ${maxBytes} are allowed`, { errorCode: "WORKER.CHECKPOINT_TOO_LARGE" });
}
