// A thread of a blocking handler.
import { pathToFileURL } from "node:url";
import { parentPort, workerData } from "node:worker_threads";

import { type Attempt, AttemptAborted, type AttemptContext, type Handler, Outcome, percentOf } from "./attempt.js";
import type { Question, Report, Run, Task } from "./blocking.js";
import { Checkpoint, type KeptStep, type Store } from "./checkpoint.js";
import { JobWeaverError } from "./errors.js";
import { codecOf, jsonOf } from "./json.js";
import { lasting, type WorkWaitAnswer } from "./waits.js";

const main = parentPort!;
const report = (one: Report) => main.postMessage(one);
const named = workerData as string; // a URL, or a path
const loading = import(/^(file|data):/.test(named) ? named : pathToFileURL(named).href) as Promise<{ default: Handler }>;
loading.catch(() => undefined); // run() throws it
const saving = new Map<number, { resolve: (answer: string) => void; reject: (error: Error) => void }>();
let abort = new AbortController();
let saves = 0;

main.on("message", (task: Task) => {
  if ("run" in task) {
    void run(task);
  } else if ("abort" in task) {
    abort.abort(new AttemptAborted(task.abort));
  } else {
    const { resolve, reject } = saving.get(task.saved)!;
    saving.delete(task.saved);
    if (task.failed === undefined) {
      resolve(task.answer ?? "");
    } else if (task.lost) {
      reject(new AttemptAborted("lost"));
    } else {
      reject(task.result ? new Outcome(task.failed, task.result) : new JobWeaverError(task.failed));
    }
  }
});

async function run({ run: text, numbers }: Run): Promise<void> {
  const codec = codecOf(numbers);
  abort = new AbortController();
  const claimed = codec.parse(text) as Attempt;
  const ask = (what: Question) =>
    new Promise<string>((resolve, reject) => {
      saving.set(++saves, { resolve, reject });
      report({ save: saves, ...what });
    });
  const store: Store = {
    save: async (number, checkpoint) => void (await ask({ number, checkpoint })),
    saveStep: async (step) => codec.parse(await ask({ step })) as KeptStep,
    readSteps: async () => codec.parse(await ask({ steps: true })) as KeptStep[],
  };
  const checkpoint = new Checkpoint(claimed.checkpoint, claimed.attempt, abort.signal, codec, store);
  const context: AttemptContext = {
    signal: abort.signal,
    progress: (percent, message) => report({ progress: [percentOf(percent), message] }),
    log: (line, level) => report({ log: [line, level] }),
    ...lasting(checkpoint, async (waits) => codec.parse(await ask({ waits: codec.stringify(waits) })) as WorkWaitAnswer),
  };
  try {
    const { default: handler } = await loading;
    abort.signal.throwIfAborted(); // while the module was loaded
    const attempt = { ...claimed, checkpoint: checkpoint.own };
    const output: unknown = await (async () => handler(attempt, context))().finally(() => checkpoint.close());
    report({ output: output === undefined ? "" : jsonOf(output, "output", "the output", codec) });
  } catch (error) {
    const { message, stack } = error instanceof Error ? error : { message: String(error), stack: undefined };
    report({ error: message, stack, result: error instanceof Outcome ? error.result : undefined });
  }
}
