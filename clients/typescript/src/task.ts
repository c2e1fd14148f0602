import type { StandardJSONSchemaV1, StandardSchemaV1 } from "@standard-schema/spec";

import { type AttemptContext, type Attempt, NotRetryable } from "./attempt.js";
import { Batches, type BatchOptions } from "./batch.js";
import type { Accepted, BatchResult, Job, JobRequest, JobWeaver } from "./client.js";
import type { CallOptions } from "./core.js";
import { JobEndedError } from "./errors.js";
import type { components } from "./schema.gen.js";

/** How the jobs of a task run. What is left out, the installation decides; the queue is `pull`, that of pull workers. */
export type TaskDefaults = Pick<
  JobRequest,
  "queue" | "priority" | "maxRetryCount" | "retryPolicy" | "timeoutMs" | "orderingKey" | "fairnessKey" | "keepBuild" | "tags" | "unique" | "throttle" | "singleton" | "debounce"
>;

/** What one job of a task has besides its payload, in place of the task's own defaults. */
export type TaskRequest = Omit<JobRequest, "jobType" | "payload">;

/** Runs an attempt of a task and returns the output of its job. */
export type TaskHandler<Payload, Output> = (payload: Payload, context: AttemptContext, attempt: Attempt<Payload>) => Output | Promise<Output>;

/** A schedule beside the function of a task. */
export interface TaskSchedule<Input> {
  /** Different for each schedule of the owner. */
  name: string;
  /** Five fields, six with seconds, or such as @every 90s. */
  cron: string;
  /** Such as Europe/Berlin; UTC by default. */
  timeZone?: string;
  payload: Input;
  overlap?: components["schemas"]["Overlap"];
  missed?: components["schemas"]["Missed"];
  startAt?: string;
  endAt?: string;
}

export interface TaskOptions<Input, Payload, Output> extends TaskDefaults {
  /** What the task does, in a few words, for people. */
  title?: string;
  description?: string;
  /** Of zod, valibot, arktype or another library of Standard Schema. The worker checks each payload by it. */
  payload?: StandardSchemaV1<Input, Payload>;
  /** Gives the output its type; the gateway shows its JSON Schema. */
  output?: StandardSchemaV1<Output, unknown>;
  /** Jobs at times. A worker that starts creates and changes them, and deletes those that it made and that are not here any more. */
  schedules?: readonly TaskSchedule<Input>[];
  /** Without it, and without batch, other workers run the task, and this process only submits it. */
  run?: TaskHandler<Payload, Output>;
  /** In place of run: takes many jobs at once, as an API for embeddings or a bulk insert does. */
  batch?: BatchOptions<Payload, Output>;
}

/** What a Worker needs of a task, whatever its types. */
export interface AnyTask {
  readonly type: string;
  readonly runs: boolean;
  readonly definition: components["schemas"]["JobTypeDefinition"];
  readonly schedules: components["schemas"]["ScheduleRequest"][];
  handle(attempt: Attempt, context: AttemptContext): Promise<unknown>;
}

/** What a handler needs of a task that it calls. */
export interface Callable<Input, Output> {
  readonly type: string;
  request(payload: Input, request?: TaskRequest): JobRequest;
  outputOf(job: Job): Output;
}

/** A job type that is defined in code: how to submit it, what it takes and returns, and how to run it. JobWeaver.task makes one. */
export class Task<Input, Output, Payload = Input> implements AnyTask, Callable<Input, Output> {
  readonly #client: JobWeaver<any>;
  readonly #options: TaskOptions<Input, Payload, Output>;
  readonly #defaults: TaskDefaults;
  readonly #batches: Batches<Payload, Output> | undefined;

  constructor(
    client: JobWeaver<any>,
    readonly type: string,
    options: TaskOptions<Input, Payload, Output>,
  ) {
    const { title: _, description: __, payload: ___, output: ____, run: _____, batch, schedules: ______, ...defaults } = options;
    this.#client = client;
    this.#options = options;
    this.#defaults = defaults;
    if (batch && options.run) {
      throw new TypeError(`the task ${type} has either run or batch`);
    }
    this.#batches = batch && new Batches(batch);
  }

  /** The request for a job of the task, as batches and schedules take it. */
  request(payload: Input, request: TaskRequest = {}): JobRequest {
    return { queue: "pull", ...this.#defaults, ...request, jobType: this.type, payload };
  }

  /** Submits a job. If it has no idempotencyKey it gets one, so that a repeated request makes no second job. */
  submit(payload: Input, request: TaskRequest = {}, options: CallOptions = {}): Promise<Accepted> {
    return this.#client.submit(this.request(payload, request), options);
  }

  /** Submits a job for each payload, 1,000 in a request, and returns a result for each, in their order. */
  submitAll(payloads: readonly Input[], request: TaskRequest = {}, options: CallOptions = {}): Promise<BatchResult[]> {
    return this.#client.submitBatch(
      payloads.map((payload) => this.request(payload, request)),
      options,
    );
  }

  /** Submits a job and returns its output once it is COMPLETED. Throws a JobEndedError if it ends otherwise. */
  async run(payload: Input, request: TaskRequest = {}, options: CallOptions = {}): Promise<Output> {
    return this.outputOf(await this.#client.run(this.request(payload, request), options));
  }

  /** Waits for a job of the task and returns its output. Throws a JobEndedError if it ends otherwise than COMPLETED. */
  async wait(jobId: string, options: CallOptions = {}): Promise<Output> {
    const job = await this.#client.wait(jobId, options);
    if (job.status !== "COMPLETED") {
      throw new JobEndedError(job);
    }
    return this.outputOf(job);
  }

  /** The output of a COMPLETED job of the task. */
  outputOf(job: Job): Output {
    return job.output as Output;
  }

  get runs(): boolean {
    return this.#options.run !== undefined || this.#batches !== undefined;
  }

  /** What a worker sends to the gateway when it starts. */
  get definition(): components["schemas"]["JobTypeDefinition"] {
    const { title, description, payload, output } = this.#options;
    return { title, description, schema: jsonSchemaOf(payload), outputSchema: jsonSchemaOf(output) };
  }

  /** The schedules, as a worker sends them when it starts. */
  get schedules(): components["schemas"]["ScheduleRequest"][] {
    return (this.#options.schedules ?? []).map(({ payload, ...schedule }) => {
      const { debounce: _, ...job } = this.request(payload);
      return { ...schedule, job } as components["schemas"]["ScheduleRequest"];
    });
  }

  /** Runs an attempt as a Worker does. */
  async handle(attempt: Attempt, context: AttemptContext): Promise<unknown> {
    const { run, payload: schema } = this.#options;
    if (!this.runs) {
      throw new TypeError(`the task ${this.type} has no function to run`);
    }
    let payload = attempt.payload as Payload;
    if (schema) {
      const result = await schema["~standard"].validate(payload);
      if (result.issues) {
        throw new NotRetryable(result.issues.map(problem).join("; "), { errorCode: "WORKER.INVALID_PAYLOAD" });
      }
      payload = result.value;
    }
    const typed = { ...attempt, payload };
    return this.#batches ? this.#batches.add({ payload, attempt: typed, context }) : run!(payload, context, typed);
  }
}

/** The JSON Schema of what the schema takes; undefined where its library has none for it. */
function jsonSchemaOf(schema?: StandardSchemaV1): Record<string, unknown> | undefined {
  const convert = (schema as Partial<StandardJSONSchemaV1> | undefined)?.["~standard"]?.jsonSchema;
  try {
    return convert?.input({ target: "draft-2020-12" });
  } catch {
    return undefined; // such as one with a transformation that has no JSON Schema
  }
}

function problem({ message, path = [] }: StandardSchemaV1.Issue): string {
  const keys = path.map((part) => (typeof part === "object" ? part.key : part));
  return `${keys.reduce<string>((at, key) => (typeof key === "number" ? `${at}[${key}]` : `${at}.${String(key)}`), "payload")}: ${message}`;
}
