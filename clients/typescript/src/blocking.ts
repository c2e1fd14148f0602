import type { Worker as Thread } from "node:worker_threads";

import type { AbortReason, Attempt, AttemptContext, Level, Result } from "./attempt.js";
import { AttemptAborted, Outcome } from "./attempt.js";
import type { NewStep, Store } from "./checkpoint.js";
import type { Codec, Numbers } from "./json.js";
import type { Ask, WorkWait } from "./waits.js";

/** To the thread of a blocking handler. */
export type Task =
  | Run
  | { abort: AbortReason }
  | { saved: number; answer?: string; failed?: string; result?: Result; lost?: boolean };

export interface Run {
  run: string; // the attempt with its checkpoint, as JSON
  numbers: Numbers;
}

/** From the thread. */
export type Report =
  | { progress: [number, string | undefined] }
  | { log: [string, Level | undefined] }
  | ({ save: number } & Question)
  | End;

/** What the thread asks of the worker. */
export type Question = { number: number; checkpoint: string } | { waits: string } | { step: NewStep } | { steps: true };

type End = { output: string } | { error: string; stack: string | undefined; result: Result | undefined };

/** What a blocking handler needs of its attempt: the rest is in its thread. */
export interface Surroundings {
  readonly attempt: Attempt;
  readonly context: AttemptContext;
  readonly codec: Codec;
  readonly store: Store;
  readonly ask: Ask;
}

const endWithinMs = 5_000;

/** Runs a module's handler in threads: one for each attempt at a time. Threads without an attempt are kept for the next ones. */
export class Threads {
  readonly #module: string;
  readonly #idle: Thread[] = [];

  constructor(module: string | URL) {
    this.#module = module instanceof URL ? module.href : module;
  }

  /** Runs an attempt, and returns its output as JSON. A thread that does not end soon after the signal is terminated. */
  async run(surroundings: Surroundings): Promise<string> {
    const thread = this.#idle.pop() ?? (await this.#start());
    const { signal } = surroundings.context;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const abort = () => {
      thread.postMessage({ abort: (signal.reason as AttemptAborted).reason } satisfies Task);
      timer = setTimeout(() => void thread.terminate(), endWithinMs);
    };
    let listeners: [string, (value: any) => void][] = [];
    try {
      const report = await new Promise<End>((resolve, reject) => {
        listeners = [
          ["message", (report: Report) => this.#receive(report, thread, surroundings, resolve)],
          ["error", (error: Error) => reject(error)],
          ["exit", () => reject(signal.aborted ? (signal.reason as Error) : new Error("the handler has ended its thread"))],
        ];
        listeners.forEach(([event, listener]) => thread.on(event, listener));
        const { attempt, codec } = surroundings;
        thread.postMessage({ run: codec.stringify(attempt), numbers: codec.numbers } satisfies Task);
        signal.addEventListener("abort", abort, { once: true });
      });
      this.#idle.push(thread);
      if ("output" in report) {
        return report.output;
      }
      const error = report.result ? new Outcome(report.error, report.result) : new Error(report.error);
      error.stack = report.stack ?? error.stack;
      throw error;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", abort);
      listeners.forEach(([event, listener]) => thread.off(event, listener));
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#idle.map((thread) => thread.terminate()));
  }

  async #start(): Promise<Thread> {
    const { Worker: NodeThread } = await import("node:worker_threads");
    const thread = new NodeThread(new URL("./blocking.thread.js", import.meta.url), { workerData: this.#module });
    thread.on("error", () => undefined); // of an idle one
    thread.on("exit", () => {
      const i = this.#idle.indexOf(thread);
      if (i >= 0) {
        this.#idle.splice(i, 1);
      }
    });
    return thread;
  }

  #receive(report: Report, thread: Thread, surroundings: Surroundings, done: (end: End) => void): void {
    const { context } = surroundings;
    if ("progress" in report) {
      context.progress(...report.progress);
    } else if ("log" in report) {
      context.log(...report.log);
    } else if ("save" in report) {
      const saved = report.save;
      this.#answer(report, surroundings).then(
        (answer) => thread.postMessage({ saved, answer } satisfies Task),
        (error: Error) => {
          const result = error instanceof Outcome ? error.result : undefined;
          thread.postMessage({ saved, failed: error.message, result, lost: error instanceof AttemptAborted } satisfies Task);
        },
      );
    } else {
      done(report);
    }
  }

  async #answer(question: Question, { store, ask, codec }: Surroundings): Promise<string | undefined> {
    if ("waits" in question) {
      return codec.stringify(await ask(codec.parse(question.waits) as WorkWait[]));
    }
    if ("step" in question) {
      return codec.stringify(await store.saveStep(question.step));
    }
    if ("steps" in question) {
      return codec.stringify(await store.readSteps());
    }
    await store.save(question.number, question.checkpoint);
    return undefined;
  }
}
