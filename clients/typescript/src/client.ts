import type { StandardSchemaV1 } from "@standard-schema/spec";
import createClient, { type Client } from "openapi-fetch";

import { type CallOptions, Core, held, type Optional, pages, type Schemas, withKey } from "./core.js";
import { JobEndedError, unwrap } from "./errors.js";
import { FlowBuilder } from "./flow.js";
import { type Codec, codecOf, type Numbers } from "./json.js";
import {
  Alerts,
  Audit,
  Batches,
  Controls,
  Dead,
  Deliveries,
  type FlowRequest,
  Flows,
  Hooks,
  Installation,
  JobTypes,
  Keys,
  Operations,
  Queues,
  Rejected,
  Schedules,
  Workers,
} from "./parts/index.js";
import type { operations, paths } from "./schema.gen.js";
import { streamEvents, type StreamEvent } from "./stream.js";
import { Task, type TaskOptions } from "./task.js";
import { Transport, type TransportOptions, version } from "./transport.js";

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

type Given = Optional<Schemas["JobRequest"], keyof Schemas["JobRequest"]>;

/** A request for a job of one of the types, with its payload. */
export type JobRequest<Types extends object = AnyJobTypes> = {
  [Name in keyof Types & string]: Omit<Given, "jobType" | "payload"> & { jobType: Name; payload: Types[Name] };
}[keyof Types & string];

/** The members that can be changed before a job has started; null restores the default. */
export type JobChange = Schemas["JobChange"];
/** Changes to the request of a job that runs again. */
export type RunAgainRequest = Schemas["RunAgainRequest"];

/** An event for handlers that wait. */
export interface EventToSend {
  /** By default a new one. */
  id?: string;
  source: string;
  type: string;
  subject?: string;
  time?: string;
  data?: unknown;
}
/** The answer to an event for handlers: the number of jobs that waited for it. */
export type EventKept = Schemas["EventKept"];

/** Selects jobs: a job must match all members. */
export type Filter = Omit<NonNullable<operations["listJobs"]["parameters"]["query"]>, "limit" | "cursor">;

/** How an attempt that an outside system works on is doing, or has ended. */
export type Callback = Schemas["Callback"];

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

const terminal = new Set<Status>(["COMPLETED", "FAILED", "CANCELLED"]);

/** Whether a job has ended. */
export function hasEnded(job: { status: Status }): boolean {
  return terminal.has(job.status);
}

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
  /** Groups of jobs that end together. */
  readonly batches: Batches<Types>;
  /** Jobs that wait for each other. */
  readonly flows: Flows<Types>;
  readonly schedules: Schedules<Types>;
  readonly alerts: Alerts;
  readonly queues: Queues;
  /** Pauses, limits and weights of queues, job types, owners and fairness keys. */
  readonly controls: Controls;
  /** Commands for many jobs. */
  readonly operations: Operations;
  /** FAILED jobs. */
  readonly dead: Dead;
  /** Requests to the callbackUrl of jobs. */
  readonly deliveries: Deliveries;
  /** Kafka records that no function could use. */
  readonly rejected: Rejected;
  readonly jobTypes: JobTypes;
  readonly workers: Workers;
  readonly hooks: Hooks;
  readonly keys: Keys;
  readonly audit: Audit;
  /** Health, statistics, owners and the identity of this client. */
  readonly installation: Installation;
  readonly #transport: Transport;
  readonly #core: Core;
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
    const core = new Core(this.api, this.#transport);
    this.#core = core;
    this.batches = new Batches(core);
    this.flows = new Flows(core);
    this.schedules = new Schedules(core);
    this.alerts = new Alerts(core);
    this.queues = new Queues(core);
    this.controls = new Controls(core);
    this.operations = new Operations(core);
    this.dead = new Dead(core);
    this.deliveries = new Deliveries(core);
    this.rejected = new Rejected(core);
    this.jobTypes = new JobTypes(core);
    this.workers = new Workers(core);
    this.hooks = new Hooks(core);
    this.keys = new Keys(core);
    this.audit = new Audit(core);
    this.installation = new Installation(core);
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
    return unwrap(await this.api.POST("/api/jobs", { body, signal, fetch: this.#core.repeat })) as Accepted;
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
      results.push(...unwrap(await this.api.POST("/api/jobs/batch", { body, signal, fetch: this.#core.repeat })).results);
    }
    return results;
  }

  async get(jobId: string, { signal }: CallOptions = {}): Promise<Job> {
    return unwrap(await this.api.GET("/api/jobs/{jobId}", { params: { path: { jobId } }, signal }));
  }

  /** Returns a job once it has ended, in any terminal state. It survives a restart of the gateway. */
  async wait(jobId: string, { signal }: CallOptions = {}): Promise<Job> {
    const params = { path: { jobId }, query: held };
    return this.#core.until(async (signal) => unwrap(await this.api.GET("/api/jobs/{jobId}", { params, signal })), hasEnded, signal);
  }

  /** Yields the jobs that match a filter, newest first, page by page. */
  list(filter: Filter = {}, { signal }: CallOptions = {}): AsyncGenerator<JobSummary, void, undefined> {
    return pages(async (page) => {
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
    return unwrap(await this.api.POST("/api/jobs/{jobId}/run-again", { params, body, signal, fetch: this.#core.repeat }));
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
   * Sends a CloudEvent to the handlers that wait for it, now or for as long as the installation keeps it. Events with the same
   * source and id count once; without an id it gets a new one.
   */
  async sendEvent(event: EventToSend, { signal }: CallOptions = {}): Promise<EventKept> {
    const body = { specversion: "1.0" as const, id: crypto.randomUUID(), datacontenttype: "application/json", ...event };
    const headers = { "Content-Type": "application/cloudevents+json" };
    return unwrap(await this.api.POST("/events", { headers, body, signal, fetch: this.#core.repeat })) as EventKept;
  }

  /** Reports the end or the progress of a WAITING attempt, with the secret that its handler passed on. */
  async callback(secret: string, callback: Callback, { signal }: CallOptions = {}): Promise<void> {
    const params = { header: { "X-Callback-Secret": secret } };
    unwrap(await this.api.POST("/api/jobs/callback", { params, body: callback, signal, fetch: this.#core.repeat }));
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
