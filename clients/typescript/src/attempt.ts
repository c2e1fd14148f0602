import type { AnyJobTypes } from "./client.js";
import { JobWeaverError } from "./errors.js";
import type { components } from "./schema.gen.js";

type Schemas = components["schemas"];
export type Result = Pick<Schemas["WorkResult"], "status"> & Partial<Omit<Schemas["WorkResult"], "token" | "status">>;
export type Level = "debug" | "info" | "warn" | "error";

/** An attempt that a handler runs. jobId and attempt together fence its side effects: no other attempt has both. */
export type Attempt<Payload = unknown> = Omit<Schemas["WorkAttempt"], "token" | "payload"> & { payload: Payload };

/** Why an attempt should end before its handler has returned. */
export type AbortReason = "cancelled" | "lost" | "deadline" | "stop";

/** The reason of an attempt's signal. */
export class AttemptAborted extends JobWeaverError {
  override name = "AttemptAborted";
  constructor(readonly reason: AbortReason) {
    super(`the attempt should end: ${reason}`);
  }
}

/** What a handler throws to choose what becomes of its attempt. Any other error fails it, and it may be retried. */
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
  /** As PHOTO.TOO_LARGE; without it WORKER.HANDLER_FAILED. */
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

/** Fails the attempt. The job's next one, where it has one left, begins after this delay. */
export class RetryAfter extends AttemptFailed {
  constructor(delayMs: number, message: string, options: FailureOptions = {}) {
    super(message, options, { retryAfterMs: whole(delayMs) });
  }
}

/** Has the job run again after a delay. It has not failed, and no retry is counted. */
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
  /** Is aborted when the attempt should end, with an AttemptAborted as its reason. */
  readonly signal: AbortSignal;
  /** Reports how far the attempt is, from 0 to 100. */
  progress(percent: number, message?: string): void;
  /** Adds a line to the job's log. */
  log(text: string, level?: Level): void;
}

/** Runs an attempt. What it returns is the output. */
export type Handler<Payload = unknown> = (attempt: Attempt<Payload>, context: AttemptContext) => unknown;

/** Handlers by job type. A type without a schema has any payload. */
export type Handlers<Types extends object = AnyJobTypes> = {
  [Name in keyof Types & string]?: Handler<unknown extends Types[Name] ? any : Types[Name]>;
};

export interface WorkerOptions<Types extends object = AnyJobTypes> {
  handlers: Handlers<Types>;
  /** How many attempts run at once, from 1 to 500; 10 by default. */
  concurrency?: number;
  /** Only attempts of these queues; without them, of all that the key covers. */
  queues?: string[];
  /** Another one for each worker; made of the host's name by default. */
  name?: string;
  /** How long stop() lets running attempts go on before their signals are aborted; 25,000 by default. */
  graceMs?: number;
  /** Between two beats; 3,000 by default. An attempt without one for 15 s is lost. */
  beatMs?: number;
  /** Takes errors of handlers, and of requests that will be repeated; console.error by default. */
  onError?: (error: unknown, attempt?: Attempt) => void;
}

/** A whole number of milliseconds, as the API takes it. */
function whole(ms: number): number {
  return Math.max(1, Math.round(ms));
}

/** Text as the API takes it: of a length, and without lone surrogates and NUL. */
export function clean(text: unknown, most: number): string {
  const whole = new TextDecoder().decode(new TextEncoder().encode(String(text).slice(0, most)));
  return whole.replaceAll("\0", "\uFFFD");
}
