export {
  type AbortReason,
  type Attempt,
  AttemptAborted,
  type AttemptContext,
  AttemptFailed,
  type BlockingHandler,
  type FailureOptions,
  type Handler,
  type Handlers,
  NotRetryable,
  Outcome,
  RetryAfter,
  Snooze,
  WaitForCallback,
  type WorkerOptions,
} from "./attempt.js";
export type { BatchItem, BatchOptions } from "./batch.js";
export * from "./client.js";
export type { CallOptions } from "./core.js";
export {
  ApiError,
  ConflictError,
  ConnectionError,
  type ErrorDetail,
  ForbiddenError,
  InvalidRequestError,
  isUnreached,
  JobEndedError,
  JobWeaverError,
  NotFoundError,
  RateLimitedError,
  UnauthorizedError,
  UnavailableError,
} from "./errors.js";
export { FlowBuilder, type FlowCondition, FlowJob, type FlowJobOptions, type Given, orElse, type Ref } from "./flow.js";
export type { Codec, Numbers } from "./json.js";
export { isLosslessNumber, LosslessNumber } from "lossless-json";
export { type Connection, enqueue, enqueueStatement } from "./outbox.js";
export type * from "./parts/index.js";
export type { components, operations, paths } from "./schema.gen.js";
export type { StreamEvent } from "./stream.js";
export { type AnyTask, type Callable, Task, type TaskDefaults, type TaskHandler, type TaskOptions, type TaskRequest, type TaskSchedule } from "./task.js";
export { version } from "./transport.js";
export { CallFailed, type CallRequest, type ReceivedEvent, type ReceiveOptions } from "./waits.js";
export { type Ending, Webhook, type WebhookOptions } from "./webhook.js";
export { Worker } from "./worker.js";
