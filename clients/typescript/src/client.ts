import type { StandardSchemaV1 } from "@standard-schema/spec";
import createClient, { type Client } from "openapi-fetch";

import { isUnreached, JobEndedError, unwrap } from "./errors.js";
import { FlowBuilder } from "./flow.js";
import { type Codec, codecOf, type Numbers } from "./json.js";
import type { components, operations, paths } from "./schema.gen.js";
import { streamEvents, type StreamEvent } from "./stream.js";
import { Task, type TaskOptions } from "./task.js";
import { backoff, sleep, Transport, type TransportOptions, version } from "./transport.js";

type Schemas = components["schemas"];

/** A job with all its details. */
export type Job = Schemas["Job"];
/** A job in lists, streams and webhooks. */
export type JobSummary = Schemas["JobSummary"];
export type Status = Schemas["Status"];
export type Accepted = Schemas["Accepted"];
export type BatchResult = Schemas["BatchResult"];
export type LogPage = Schemas["LogPage"];

/** Job types and their payloads. The command `jobweaver-types` writes those of an installation; without it any type has any payload. */
export type AnyJobTypes = Record<string, unknown>;

type Optional<T, K extends keyof T> = Omit<T, K> & Partial<Pick<T, K>>;
type Given = Optional<Schemas["JobRequest"], keyof Schemas["JobRequest"]>;

/** A request for a job of one of the types, with its payload. */
export type JobRequest<Types extends object = AnyJobTypes> = {
  [Name in keyof Types & string]: Omit<Given, "jobType" | "payload"> & { jobType: Name; payload: Types[Name] };
}[keyof Types & string];

/** The members that can be changed before a job has started; null restores the default. */
export type JobChange = Schemas["JobChange"];
/** Changes to the request of a job that runs again. */
export type RunAgainRequest = Schemas["RunAgainRequest"];

/** Selects jobs: a job must match all members. */
export type Filter = Omit<NonNullable<operations["listJobs"]["parameters"]["query"]>, "limit" | "cursor">;

/** A request for a batch, with its first jobs. */
export type BatchRequest<Types extends object = AnyJobTypes> = Omit<Schemas["BatchRequest"], "jobs" | "closed" | FollowUps> &
  Partial<Record<FollowUps, JobRequest<Types>>> & { jobs?: readonly JobRequest<Types>[]; closed?: boolean };
type FollowUps = "onComplete" | "onFailure";
/** A batch in a list. */
export type BatchSummary = Schemas["BatchFields"];
export type Batch = Schemas["Batch"];

/** A request for a job of a flow. Its payload may refer to the output of another job: `{ $output: "name" }`. */
export type FlowJobRequest = Optional<Schemas["FlowJobRequest"], "keepBuild">;
/** A request for a flow: jobs that name each other in `after`. */
export type FlowRequest<Types extends object = AnyJobTypes> = Omit<Schemas["FlowRequest"], "jobs" | FollowUps> &
  Partial<Record<FollowUps, JobRequest<Types>>> & { jobs: Record<string, FlowJobRequest> };
/** The ids of a flow and of its jobs, by their names. */
export type MadeFlow = Schemas["MadeFlow"];
/** A flow in a list. */
export type FlowSummary = Schemas["FlowFields"];
/** A flow with its graph. */
export type Flow = Schemas["JobFlow"];

/** Selects batches or flows: they must match all members. */
export interface BatchFilter {
  status?: Schemas["BatchStatus"];
  ownerId?: string;
}

export type Queue = Schemas["QueueInfo"];

export interface Options extends TransportOptions {
  /** The address of the gateway; by default JOBWEAVER_URL, or http://localhost:8080. */
  url?: string;
  /** An API key, or a token of the installation's OpenID Connect issuer; by default JOBWEAVER_API_KEY. */
  apiKey?: string;
  /**
   * "double", the default, reads numbers as JSON.parse does: 1970670598291982290 becomes 1970670598291982300. With "lossless" a
   * number that a double would write differently is a LosslessNumber, and is written as it was read; a BigInt is written, too.
   */
  numbers?: Numbers;
}

export interface CallOptions {
  signal?: AbortSignal;
}

const terminal = new Set<Status>(["COMPLETED", "FAILED", "CANCELLED"]);

/** Whether a job has ended. */
export function hasEnded(job: { status: Status }): boolean {
  return terminal.has(job.status);
}

const query = { wait: "30s" }; // of a request that waits; the API allows 60 s
const awayAtMost = 120_000; // ms that a call waits for a gateway that restarts

/** A setting of the environment, where there is one; an empty setting is none. */
function fromEnv(name: string): string | undefined {
  return (typeof process === "undefined" ? undefined : process.env[name]) || undefined;
}

/** A client of one gateway. */
export class JobWeaver<Types extends object = AnyJobTypes> {
  /** Every operation of the API, typed by its contract, with the same retries; it returns errors instead of throwing them. */
  readonly api: Client<paths>;
  /** The time limit of a single request. */
  readonly timeoutMs: number;
  readonly #transport: Transport;
  readonly #repeat = (request: Request) => this.#transport.send(request, true);
  readonly #url: string;
  readonly #headers: Headers;
  readonly #options: Options;

  constructor({ url = fromEnv("JOBWEAVER_URL") ?? "http://localhost:8080", apiKey = fromEnv("JOBWEAVER_API_KEY"), ...rest }: Options = {}) {
    const options = { ...rest, url, apiKey };
    this.#options = options;
    this.#transport = new Transport(options, codecOf(options.numbers));
    this.timeoutMs = this.#transport.timeoutMs;
    this.#url = url.replace(/\/+$/, "");
    this.#headers = new Headers({ Accept: "application/json, application/problem+json, */*;q=0.1" });
    if (typeof process !== "undefined") {
      this.#headers.set("User-Agent", `jobweaver-typescript/${version}`); // a browser has its own
    }
    if (apiKey) {
      this.#headers.set("Authorization", `Bearer ${apiKey}`);
    }
    this.api = createClient<paths>({
      baseUrl: this.#url,
      headers: this.#headers,
      bodySerializer: (body) => this.codec.stringify(body),
      redirect: "manual", // the body and headers would be sent to the redirect's target
      fetch: (request) => this.#transport.send(request),
    });
  }

  /**
   * Defines a job type in code: its payload and output, how its jobs run, and the function that runs them. The types follow from
   * `payload`, a schema, or from the parameter of `run`.
   */
  task<Input, Payload, Output = unknown>(
    type: string,
    options: TaskOptions<Input, Payload, Output> & { payload: StandardSchemaV1<Input, Payload> },
  ): Task<Input, Output, Payload>;
  task<Input, Output = unknown>(type: string, options?: TaskOptions<Input, Input, Output> & { payload?: undefined }): Task<Input, Output>;
  task(type: string, options: TaskOptions<any, any, any> = {}): Task<any, any, any> {
    return new Task(this, type, options);
  }

  /** Begins a flow that is written as code. */
  flow(about: Omit<FlowRequest<Types>, "jobs"> = {}): FlowBuilder {
    return new FlowBuilder(this, about as Omit<FlowRequest, "jobs">);
  }

  /** Ends all requests and streams, and makes every later request fail. */
  close(): void {
    this.#transport.close();
  }

  /** Reads and writes the JSON of this client. */
  get codec(): Codec {
    return this.#transport.codec;
  }

  /** The options of this client, and the headers of its requests. */
  get settings(): { options: Options; url: string; headers: Headers } {
    return { options: this.#options, url: this.#url, headers: this.#headers };
  }

  /** Aborted by close(). */
  get closed(): AbortSignal {
    return this.#transport.signal();
  }

  /** Submits a job. If it has no idempotencyKey it gets one, so that a repeated request makes no second job. */
  async submit(job: JobRequest<Types>, { signal }: CallOptions = {}): Promise<Accepted> {
    const body = withKey(job) as unknown as Schemas["JobRequest"];
    return unwrap(await this.api.POST("/api/jobs", { body, signal, fetch: this.#repeat })) as Accepted;
  }

  /** Submits a job and returns it once it is COMPLETED. Throws a JobEndedError if it ends otherwise. */
  async run(job: JobRequest<Types>, options: CallOptions = {}): Promise<Job> {
    const { jobId } = await this.submit(job, options);
    const ended = await this.wait(jobId, options);
    if (ended.status !== "COMPLETED") {
      throw new JobEndedError(ended);
    }
    return ended;
  }

  /**
   * Submits any number of jobs, 1,000 in a request, and returns a result for each, in their order. A refused job does not stop
   * the others. Each job without an idempotencyKey gets one.
   */
  async submitBatch(jobs: readonly JobRequest<Types>[], { signal }: CallOptions = {}): Promise<BatchResult[]> {
    const results: BatchResult[] = [];
    for (let i = 0; i < jobs.length; i += 1000) {
      const body = { jobs: jobs.slice(i, i + 1000).map((job) => withKey(job)) };
      results.push(...unwrap(await this.api.POST("/api/jobs/batch", { body, signal, fetch: this.#repeat })).results);
    }
    return results;
  }

  async get(jobId: string, { signal }: CallOptions = {}): Promise<Job> {
    return unwrap(await this.api.GET("/api/jobs/{jobId}", { params: { path: { jobId } }, signal }));
  }

  /** Returns a job once it has ended, in any terminal state. It survives a restart of the gateway. */
  async wait(jobId: string, { signal }: CallOptions = {}): Promise<Job> {
    const params = { path: { jobId }, query };
    return this.#wait(async (signal) => unwrap(await this.api.GET("/api/jobs/{jobId}", { params, signal })), hasEnded, signal);
  }

  /** Reads until something has ended. Each request is held until then, or for a while. */
  async #wait<T>(read: (signal: AbortSignal) => Promise<T>, ended: (now: T) => boolean, own?: AbortSignal): Promise<T> {
    const signal = this.#transport.signal(own);
    for (let failed = 0, alive = Date.now(); ; ) {
      try {
        const now = await read(signal);
        if (ended(now)) {
          return now;
        }
        [failed, alive] = [0, Date.now()];
      } catch (error) {
        signal.throwIfAborted();
        if (!isUnreached(error) || Date.now() - alive > awayAtMost) {
          throw error;
        }
        failed++;
      }
      await sleep(backoff(failed), signal); // a busy gateway answers without waiting
    }
  }

  /** Yields the jobs that match a filter, newest first, page by page. */
  async *list(filter: Filter = {}, { signal }: CallOptions = {}): AsyncGenerator<JobSummary, void, undefined> {
    yield* pages(async (page) => {
      const { jobs, nextCursor } = unwrap(await this.api.GET("/api/jobs", { params: { query: { ...filter, ...page } }, signal }));
      return [jobs, nextCursor];
    });
  }

  /** Cancels a job. If it ends before the command reaches it, it keeps that state. */
  async cancel(jobId: string, { signal }: CallOptions = {}): Promise<void> {
    unwrap(await this.api.POST("/api/jobs/{jobId}/cancel", { params: { path: { jobId } }, signal }));
  }

  /** Runs a FAILED or CANCELLED job again. */
  async retry(jobId: string, { signal }: CallOptions = {}): Promise<void> {
    unwrap(await this.api.POST("/api/jobs/{jobId}/retry", { params: { path: { jobId } }, signal }));
  }

  /** Moves a waiting job to another instant. */
  async reschedule(jobId: string, at: Date, { signal }: CallOptions = {}): Promise<void> {
    const body = { runAt: at.toISOString() };
    unwrap(await this.api.POST("/api/jobs/{jobId}/reschedule", { params: { path: { jobId } }, body, signal }));
  }

  /** Changes a job that has not started. */
  async change(jobId: string, change: JobChange, { signal }: CallOptions = {}): Promise<void> {
    const headers = { "Content-Type": "application/merge-patch+json" };
    unwrap(await this.api.PATCH("/api/jobs/{jobId}", { params: { path: { jobId } }, body: change, headers, signal }));
  }

  /** Submits a new job with the request of this one, and changes. */
  async runAgain(jobId: string, changes: RunAgainRequest = {}, { signal }: CallOptions = {}): Promise<Accepted> {
    const params = { path: { jobId } };
    const body = withKey(changes);
    return unwrap(await this.api.POST("/api/jobs/{jobId}/run-again", { params, body, signal, fetch: this.#repeat }));
  }

  /** Deletes a job that has ended. */
  async delete(jobId: string, { signal }: CallOptions = {}): Promise<void> {
    unwrap(await this.api.DELETE("/api/jobs/{jobId}", { params: { path: { jobId } }, signal }));
  }

  /** Returns the last lines of a job's log, oldest first; with the cursor of a page, older lines. */
  async logs(
    jobId: string,
    { signal, ...query }: CallOptions & { attempt?: number; cursor?: string } = {},
  ): Promise<LogPage> {
    return unwrap(await this.api.GET("/api/jobs/{jobId}/logs", { params: { path: { jobId }, query }, signal }));
  }

  /**
   * Creates a batch with all of its jobs, or no batch, and returns its id. Other jobs can join it by their batchId until it is
   * closed. If it has no idempotencyKey it gets one, so that a repeated request makes no second batch.
   */
  async createBatch(batch: BatchRequest<Types>, { signal }: CallOptions = {}): Promise<string> {
    const body = withKey(batch) as Schemas["BatchRequest"];
    return unwrap(await this.api.POST("/api/batches", { body, signal, fetch: this.#repeat })).batchId;
  }

  async getBatch(batchId: string, { signal }: CallOptions = {}): Promise<Batch> {
    return unwrap(await this.api.GET("/api/batches/{batchId}", { params: { path: { batchId } }, signal }));
  }

  /** Returns a batch once it has ended, in any state. It survives a restart of the gateway. */
  async waitForBatch(batchId: string, { signal }: CallOptions = {}): Promise<Batch> {
    const params = { path: { batchId }, query };
    return this.#wait(
      async (signal) => unwrap(await this.api.GET("/api/batches/{batchId}", { params, signal })),
      (batch) => batch.finishedAt !== null,
      signal,
    );
  }

  /** Yields the batches that match a filter, newest first, page by page. Those that have not ended have no counts. */
  async *listBatches(filter: BatchFilter = {}, { signal }: CallOptions = {}): AsyncGenerator<BatchSummary, void, undefined> {
    yield* pages(async (page) => {
      const params = { query: { ...filter, ...page } };
      const { batches, nextCursor } = unwrap(await this.api.GET("/api/batches", { params, signal }));
      return [batches, nextCursor];
    });
  }

  /** Closes a batch, so that no more jobs can join it. */
  async closeBatch(batchId: string, { signal }: CallOptions = {}): Promise<void> {
    const params = { path: { batchId } };
    unwrap(await this.api.POST("/api/batches/{batchId}/close", { params, signal, fetch: this.#repeat }));
  }

  /** Closes a batch and cancels its jobs by an operation, whose id it returns. */
  async cancelBatch(batchId: string, { signal }: CallOptions = {}): Promise<string> {
    return unwrap(await this.api.POST("/api/batches/{batchId}/cancel", { params: { path: { batchId } }, signal })).operationId;
  }

  /** Runs the FAILED and CANCELLED jobs of a batch again by an operation, whose id it returns. */
  async retryBatch(batchId: string, { signal }: CallOptions = {}): Promise<string> {
    return unwrap(await this.api.POST("/api/batches/{batchId}/retry", { params: { path: { batchId } }, signal })).operationId;
  }

  /** Submits a flow. If it has no idempotencyKey it gets one, so that a repeated request makes no second flow. */
  async createFlow(flow: FlowRequest<Types>, { signal }: CallOptions = {}): Promise<MadeFlow> {
    const body = withKey(flow) as Schemas["FlowRequest"];
    return unwrap(await this.api.POST("/api/flows", { body, signal, fetch: this.#repeat }));
  }

  /** Returns a flow with its graph and the states of its jobs. */
  async getFlow(flowId: string, { signal }: CallOptions = {}): Promise<Flow> {
    return unwrap(await this.api.GET("/api/flows/{flowId}", { params: { path: { flowId } }, signal }));
  }

  /** Returns a flow once it has ended, in any state. It survives a restart of the gateway. */
  async waitForFlow(flowId: string, { signal }: CallOptions = {}): Promise<Flow> {
    const params = { path: { flowId }, query };
    return this.#wait(
      async (signal) => unwrap(await this.api.GET("/api/flows/{flowId}", { params, signal })),
      (flow) => flow.finishedAt !== null,
      signal,
    );
  }

  /** Yields the flows that match a filter, newest first, page by page. Those that have not ended have no counts. */
  async *listFlows(filter: BatchFilter = {}, { signal }: CallOptions = {}): AsyncGenerator<FlowSummary, void, undefined> {
    yield* pages(async (page) => {
      const { flows, nextCursor } = unwrap(await this.api.GET("/api/flows", { params: { query: { ...filter, ...page } }, signal }));
      return [flows, nextCursor];
    });
  }

  /** Cancels the jobs of a flow by an operation, whose id it returns. */
  async cancelFlow(flowId: string, { signal }: CallOptions = {}): Promise<string> {
    return unwrap(await this.api.POST("/api/flows/{flowId}/cancel", { params: { path: { flowId } }, signal })).operationId;
  }

  /**
   * Runs the FAILED and CANCELLED jobs of a flow again, in the order of its graph, and returns how many these may be.
   * With `from`, the jobs with these names and all that come after them run as new jobs; with `all`, the whole flow.
   */
  async retryFlow(flowId: string, { signal, from, all }: CallOptions & Schemas["FlowRetryRequest"] = {}): Promise<number> {
    const body = from || all ? { from, all } : undefined;
    return unwrap(await this.api.POST("/api/flows/{flowId}/retry", { params: { path: { flowId } }, body, signal })).jobs;
  }

  /** Creates a queue. One that is there is left as it is, and a removal is taken back. */
  async createQueue(
    queue: string,
    { signal, workers = "runjob" }: CallOptions & { workers?: Schemas["QueueWorkers"] } = {},
  ): Promise<Queue> {
    return unwrap(await this.api.PUT("/api/queues/{queue}", { params: { path: { queue } }, body: { workers }, signal }));
  }

  /** Returns a queue. Once it is removed, this throws a NotFoundError. */
  async getQueue(queue: string, { signal }: CallOptions = {}): Promise<Queue> {
    return unwrap(await this.api.GET("/api/queues/{queue}", { params: { path: { queue } }, signal }));
  }

  /** Returns all queues. */
  async listQueues({ signal }: CallOptions = {}): Promise<Queue[]> {
    return unwrap(await this.api.GET("/api/queues", { signal })).queues;
  }

  /**
   * Begins the removal of a created queue. While jobs in it have not ended, that is a ConflictError, unless drain is true: then
   * the queue is removed when they have ended.
   */
  async removeQueue(queue: string, { signal, drain = false }: CallOptions & { drain?: boolean } = {}): Promise<void> {
    unwrap(await this.api.DELETE("/api/queues/{queue}", { params: { path: { queue }, query: { drain } }, signal }));
  }

  /**
   * Follows one job with its progress and log, or the jobs of a filter, as they change. A broken stream is resumed
   * after its last event. It ends when the loop ends, the signal is aborted or the gateway refuses it.
   */
  stream(what: { jobId: string } | Filter = {}, { signal }: CallOptions = {}): AsyncGenerator<StreamEvent, void, undefined> {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(what)) {
      for (const one of Array.isArray(value) ? value : [value]) {
        if (one !== undefined) {
          query.append(name, String(one));
        }
      }
    }
    return streamEvents(this.#transport, `${this.#url}/api/stream?${query}`, this.#headers, signal);
  }
}

/** Yields all entries of a list, page by page. */
async function* pages<T>(read: (page: { limit: number; cursor?: string }) => Promise<[T[], string | null]>) {
  for (let cursor: string | undefined; ; ) {
    const [entries, next] = await read({ limit: 200, cursor });
    yield* entries;
    if (next === null) {
      return;
    }
    cursor = next;
  }
}

/** Returns a request with its idempotency key, or with a new one. A job id of the client is also the key. */
function withKey<T extends { idempotencyKey?: string | null; jobId?: string }>(job: T): T {
  return job.idempotencyKey || job.jobId ? job : { ...job, idempotencyKey: crypto.randomUUID() };
}
