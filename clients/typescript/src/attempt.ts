import type { AnyJobTypes } from "./client.js";
import { JobWeaverError } from "./errors.js";
import type { components } from "./schema.gen.js";
import type { AnyTask, Callable } from "./task.js";
import type { CallRequest, ReceiveOptions, ReceivedEvent } from "./waits.js";

type Schemas = components["schemas"];
export type Result = Pick<Schemas["WorkResult"], "status"> & Partial<Omit<Schemas["WorkResult"], "token" | "status">>;
export type Level = "debug" | "info" | "warn" | "error";

/** An attempt that a handler runs. jobId and attempt together fence its side effects: no other attempt has both. */
export type Attempt<Payload = unknown> = Omit<Schemas["WorkAttempt"], "token" | "payload" | "checkpoint"> & {
  payload: Payload;
  /** What the job's earlier attempts have saved last; undefined if nothing. */
  checkpoint?: any;
};

/** Why an attempt should end before its handler has returned. */
export type AbortReason = "cancelled" | "lost" | "deadline" | "stop";

/** The reason of an attempt's signal. */
export class AttemptAborted extends JobWeaverError {
  override name = "AttemptAborted";
  constructor(readonly reason: AbortReason) {
    super(`the attempt should end: ${reason}`);
  }
}

/** Base of the errors that decide the outcome of an attempt. Any other error fails the attempt, and the job may be retried. */
export class Outcome extends JobWeaverError {
  constructor(
    message: string,
    readonly result: Result,
    cause?: unknown,
  ) {
    super(message, { cause });
    this.name = new.target.name;
  }
}

export interface FailureOptions {
  /** Such as PHOTO.TOO_LARGE; by default WORKER.HANDLER_FAILED. */
  errorCode?: string;
  cause?: unknown;
}

/** Fails the attempt with an error code. The job's retry policy decides whether there is another one, and when. */
export class AttemptFailed extends Outcome {
  constructor(message: string, { errorCode, cause }: FailureOptions = {}, more: Partial<Result> = {}) {
    super(message, { status: "FAILED", message: clean(message, 4096), errorCode, ...more }, cause);
  }
}

/** Fails the attempt and with it the job: another attempt would fail, too. */
export class NotRetryable extends AttemptFailed {
  constructor(message: string, options: FailureOptions = {}) {
    super(message, options, { retryable: false });
  }
}

/** Fails the attempt. If a retry is left, it follows after this delay. */
export class RetryAfter extends AttemptFailed {
  constructor(delayMs: number, message: string, options: FailureOptions = {}) {
    super(message, options, { retryAfterMs: whole(delayMs) });
  }
}

/** Runs the job again after a delay. This costs no retry. */
export class Snooze extends Outcome {
  constructor(delayMs: number) {
    super(`snoozed for ${delayMs} ms`, { status: "SNOOZED", delayMs: whole(delayMs) });
  }
}

/** Leaves the attempt to an outside system, which ends it by the attempt's callback within this time. */
export class WaitForCallback extends Outcome {
  constructor(timeoutMs: number) {
    super(`waits for a callback for ${timeoutMs} ms`, { status: "WAITING", callbackTimeoutMs: whole(timeoutMs) });
  }
}

export interface AttemptContext {
  /** Aborted when the attempt should end, with an AttemptAborted as its reason. */
  readonly signal: AbortSignal;
  /** Reports the progress of the attempt, from 0 to 100. */
  progress(percent: number, message?: string): void;
  /** Adds a line to the job's log. */
  log(text: string, level?: Level): void;
  /**
   * Saves a value of at most 64 KiB of JSON in place of the last one. When it resolves, the value is stored, and the job's next
   * attempt has it as its checkpoint. It may be called for a moment after the signal was aborted.
   */
  save(value: unknown): Promise<void>;
  /**
   * Runs a part of the handler and remembers its result. If an attempt of the job has a result of this name already, it returns
   * that, and does not run it again. Either way the result has been through JSON. A step that fails is not remembered. If the
   * process dies after the step had its effect and before the result is stored, the step runs again: give the systems that it
   * calls jobId and the step's name as idempotency key. Each step of an attempt has another name. Steps may run side by side: if the
   * handler ends while steps run, its attempt ends when their results are stored, and no further step begins.
   */
  step<T>(name: string, run: () => T | Promise<T>): Promise<T>;
  /** Pauses between steps without keeping a slot: it throws a Snooze until the time has passed, and then resolves. */
  sleep(name: string, ms: number): Promise<void>;
  /**
   * Waits for a CloudEvent that is sent to the gateway, by a client, a hook, a trigger or a person. It returns the event also if it
   * came before, and undefined if the time is over. Until then it throws a Snooze: the handler keeps no slot, and is called again
   * when the event has come. An event is given to a job once.
   */
  receive<Data = any>(type: string, options?: ReceiveOptions): Promise<ReceivedEvent<Data> | undefined>;
  /**
   * Submits a job of a task and returns its output once it is COMPLETED; it throws a CallFailed if the job ends otherwise. Until then
   * it throws a Snooze, as receive() does. However often the handler is called, a call makes one job, which is cancelled if the
   * handler's job ends first. The worker's API key needs the role submit, too.
   */
  call<Input, Output>(task: Callable<Input, Output>, payload: Input, request?: CallRequest): Promise<Output>;
  /** call() for many payloads. The handler is called again when all jobs have ended; the outputs are in the order of the payloads. */
  callAll<Input, Output>(task: Callable<Input, Output>, payloads: readonly Input[], request?: CallRequest): Promise<Output[]>;
}

/** Runs an attempt and returns the output. */
export type Handler<Payload = unknown> = (attempt: Attempt<Payload>, context: AttemptContext) => unknown;

/**
 * A handler that computes or blocks for long: it runs in a thread of its own. The module's default export is the Handler. An
 * attempt that should end and does not within 5 s is terminated with its thread.
 */
export interface BlockingHandler {
  blocking: true;
  /** Such as new URL("./resize.js", import.meta.url). */
  module: string | URL;
}

/** Handlers by job type. A type without a schema can have any payload. */
export type Handlers<Types extends object = AnyJobTypes> = {
  [Name in keyof Types & string]?: Handler<unknown extends Types[Name] ? any : Types[Name]> | BlockingHandler;
};

export interface WorkerOptions<Types extends object = AnyJobTypes> {
  /** The tasks that it runs. It describes them to the gateway when it starts. */
  tasks?: readonly AnyTask[];
  /** Handlers of types that no task defines. */
  handlers?: Handlers<Types>;
  /** How many attempts run at once, from 1 to 500; 10 by default. */
  concurrency?: number;
  /** Only attempts of these queues; by default, of all that the key covers. */
  queues?: string[];
  /** Different for each worker; by default made from the host's name. */
  name?: string;
  /** How long attempts may run after stop() before their signals are aborted; 25,000 by default. */
  graceMs?: number;
  /** Between two heartbeats; 3,000 by default. An attempt without a heartbeat for 15 s is lost. */
  heartbeatMs?: number;
  /** Called with errors of handlers, and of requests that will be repeated; console.error by default. */
  onError?: (error: unknown, attempt?: Attempt) => void;
}

/** A whole number of milliseconds that the API accepts. */
function whole(ms: number): number {
  return Math.max(1, Math.round(ms));
}

/** Whole percents from 0 to 100; another value that is no number fails the attempt for good. */
export function percentOf(percent: number): number {
  if (!Number.isFinite(percent)) {
    throw new NotRetryable(`the progress has no JSON form: percent is ${percent}`, { errorCode: "WORKER.INVALID_OUTPUT" });
  }
  return Math.round(Math.min(100, Math.max(0, percent)));
}

/** Text that the API accepts: of limited length, without lone surrogates and NUL. */
export function clean(text: unknown, most: number): string {
  const whole = new TextDecoder().decode(new TextEncoder().encode(String(text).slice(0, most)));
  return whole.replaceAll("\0", "\uFFFD");
}
