import type { Attempt, AttemptContext } from "./attempt.js";
import { NotRetryable } from "./attempt.js";

/** A job of a batch. */
export interface BatchItem<Payload> {
  payload: Payload;
  attempt: Attempt<Payload>;
  /** Its own signal, log, steps and waits. */
  context: AttemptContext;
}

/** How a task takes many jobs at once. Each of them takes a slot of its worker. */
export interface BatchOptions<Payload, Output> {
  /** Jobs at once; 100 by default. */
  max?: number;
  /** How long the first one waits for others; 100 by default. */
  waitMs?: number;
  /**
   * Runs the jobs, and returns the output of each in their order, or the error with which it fails: each is settled, retried and
   * cancelled alone. What it throws ends all of them.
   */
  run: (items: BatchItem<Payload>[]) => Promise<(Output | Error)[]>;
}

interface Waiting<Payload> extends BatchItem<Payload> {
  resolve: (output: unknown) => void;
  reject: (error: unknown) => void;
}

/** Collects the jobs of the next batch. */
export class Batches<Payload, Output> {
  readonly #options: BatchOptions<Payload, Output>;
  #items: Waiting<Payload>[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(options: BatchOptions<Payload, Output>) {
    this.#options = options;
  }

  /** Runs an attempt in a batch, and returns its output. */
  add(item: BatchItem<Payload>): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#items.push({ ...item, resolve, reject });
      const { max = 100, waitMs = 100 } = this.#options;
      if (this.#items.length >= max) {
        this.#begin();
      } else {
        this.#timer ??= setTimeout(() => this.#begin(), waitMs);
      }
    });
  }

  #begin(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const items = this.#items;
    this.#items = [];
    void this.#run(items);
  }

  async #run(items: Waiting<Payload>[]): Promise<void> {
    try {
      const outputs = await this.#options.run(items.map(({ payload, attempt, context }) => ({ payload, attempt, context })));
      items.forEach(({ resolve, reject }, i) => {
        if (i >= outputs.length) {
          reject(new NotRetryable("the batch handler has returned no result for the job", { errorCode: "WORKER.NO_RESULT" }));
        } else if (outputs[i] instanceof Error) {
          reject(outputs[i]);
        } else {
          resolve(outputs[i]);
        }
      });
    } catch (error) {
      items.forEach(({ reject }) => reject(error));
    }
  }
}
