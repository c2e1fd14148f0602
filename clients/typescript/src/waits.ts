import { type AttemptContext, NotRetryable, Snooze } from "./attempt.js";
import type { Checkpoint } from "./checkpoint.js";
import type { components } from "./schema.gen.js";
import type { Callable, TaskRequest } from "./task.js";

type Schemas = components["schemas"];
export type WorkWait = Schemas["WorkWait"];
export type WorkWaitAnswer = Schemas["WorkWaitAnswer"];
type State = WorkWaitAnswer["waits"][number];

const maxAsked = 20; // waits of a request

/** What a handler names of the event that it waits for. */
export interface ReceiveOptions {
  /** By which the wait is known in all attempts of the job; by default the type. */
  name?: string;
  /** Members that the data must have, by their paths: { "order.id": "A-17" }. */
  match?: Record<string, string | number | boolean | null>;
  source?: string;
  subject?: string;
  /** After this time there is no event any more; without it the wait takes as long as it takes. */
  timeoutMs?: number;
}

/** A CloudEvent that has come. */
export interface ReceivedEvent<Data = any> {
  id: string;
  source: string;
  type: string;
  subject?: string;
  time?: string;
  data: Data;
}

/** What the job of a call has besides its payload, in place of the task's own defaults. */
export type CallRequest = Omit<TaskRequest, "after" | "forEach" | "orderingKey" | "idempotencyKey" | "unique" | "throttle" | "singleton" | "debounce"> & {
  /** By which the call is known in all attempts of the job; by default the task's type. */
  name?: string;
};

/**
 * The error of a call whose job has not completed. It fails the handler's job without a retry, since the called job had retries
 * of its own. If the handler's job is retried by hand, it calls again.
 */
export class CallFailed extends NotRetryable {
  constructor(
    readonly call: string,
    readonly jobId: string | null,
    readonly status: Schemas["Status"],
    readonly lastError: Schemas["LastErrorOrNull"],
  ) {
    const why = lastError ? `: ${lastError.errorCode}: ${lastError.message}` : "";
    super(`${call}: job ${jobId} is ${status}${why}`, { errorCode: "WORKER.CHILD_FAILED" });
  }
}

/** Asks the gateway how waits of an attempt stand. */
export type Ask = (waits: WorkWait[]) => Promise<WorkWaitAnswer>;

/** What the context of an attempt has from its checkpoint and its waits. */
export function lasting(checkpoint: Checkpoint, ask: Ask): Pick<AttemptContext, "save" | "step" | "sleep" | "receive" | "call" | "callAll"> {
  const waits = new Waits(checkpoint, ask);
  return {
    save: (value) => checkpoint.save(value),
    step: (name, run) => checkpoint.step(name, run),
    sleep: (name, ms) => checkpoint.sleep(name, ms),
    receive: (type, options) => waits.receive(type, options),
    call: (task, payload, options) => waits.call(task, payload, options),
    callAll: (task, payloads, options) => waits.callAll(task, payloads, options),
  };
}

class Waits {
  readonly #checkpoint: Checkpoint;
  readonly #ask: Ask;

  constructor(checkpoint: Checkpoint, ask: Ask) {
    this.#checkpoint = checkpoint;
    this.#ask = ask;
  }

  async receive<Data>(type: string, { name = type, match, source, subject, timeoutMs }: ReceiveOptions = {}): Promise<ReceivedEvent<Data> | undefined> {
    const [state] = await this.#await([{ name, timeoutMs, event: { type, match, source, subject } }]);
    return state!.event as ReceivedEvent<Data> | undefined;
  }

  async call<Input, Output>(task: Callable<Input, Output>, payload: Input, { name = task.type, ...request }: CallRequest = {}): Promise<Output> {
    const [state] = await this.#await([{ name, job: task.request(payload, request) as Schemas["JobRequest"] }]);
    return outputOf<Output>(state!);
  }

  async callAll<Input, Output>(
    task: Callable<Input, Output>,
    payloads: readonly Input[],
    { name = task.type, ...request }: CallRequest = {},
  ): Promise<Output[]> {
    const jobs = payloads.map((payload, i) => ({
      name: `${name} ${i}`,
      group: name,
      job: task.request(payload, request) as Schemas["JobRequest"],
    }));
    return (await this.#await(jobs)).map((state) => outputOf<Output>(state));
  }

  /** How waits stand once none is open; until then it throws a Snooze. */
  async #await(waits: WorkWait[]): Promise<State[]> {
    waits.forEach(({ name }) => this.#checkpoint.use(name));
    const states: State[] = [];
    const delays: number[] = [];
    for (let from = 0; from < waits.length; from += maxAsked) {
      const answer = await this.#ask(waits.slice(from, from + maxAsked));
      states.push(...answer.waits);
      if (answer.delayMs !== null) {
        delays.push(answer.delayMs);
      }
    }
    if (delays.length > 0) {
      throw new Snooze(Math.min(...delays));
    }
    return states;
  }
}

function outputOf<Output>({ name, job }: State): Output {
  if (job?.status !== "COMPLETED") {
    throw new CallFailed(name, job?.jobId ?? null, job?.status ?? "FAILED", job?.lastError ?? null);
  }
  return job.output as Output;
}
