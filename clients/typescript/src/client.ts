import createClient, { type Client } from "openapi-fetch";

import { isUnreached, JobEndedError, unwrap } from "./errors.js";
import type { components, operations, paths } from "./schema.gen.js";
import { streamEvents, type StreamEvent } from "./stream.js";
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

export interface Options extends TransportOptions {
  /** The address of the gateway, such as http://localhost:8080. */
  url: string;
  /** An API key, or a token of the installation's OpenID Connect issuer. */
  apiKey?: string;
}

export interface CallOptions {
  signal?: AbortSignal;
}

const terminal = new Set<Status>(["COMPLETED", "FAILED", "CANCELLED"]);

/** Whether a job has ended. */
export function hasEnded(job: { status: Status }): boolean {
  return terminal.has(job.status);
}

const holdSeconds = 30; // the wait of one request; the API allows 60 s
const awayAtMost = 120_000; // ms that a call waits for a gateway that restarts

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

  constructor(options: Options) {
    this.#transport = new Transport(options);
    this.timeoutMs = this.#transport.timeoutMs;
    this.#url = options.url.replace(/\/+$/, "");
    this.#headers = new Headers({ Accept: "application/json, application/problem+json, */*;q=0.1" });
    if (typeof process !== "undefined") {
      this.#headers.set("User-Agent", `jobweaver-typescript/${version}`); // a browser has its own
    }
    if (options.apiKey) {
      this.#headers.set("Authorization", `Bearer ${options.apiKey}`);
    }
    this.api = createClient<paths>({
      baseUrl: this.#url,
      headers: this.#headers,
      redirect: "manual", // the body and headers would be sent to the redirect's target
      fetch: (request) => this.#transport.send(request),
    });
  }

  /** Ends all requests and streams, and makes every later request fail. */
  close(): void {
    this.#transport.close();
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
  async wait(jobId: string, options: CallOptions = {}): Promise<Job> {
    const signal = this.#transport.signal(options.signal);
    for (let failed = 0, alive = Date.now(); ; ) {
      try {
        const params = { path: { jobId }, query: { wait: `${holdSeconds}s` } };
        const job = unwrap(await this.api.GET("/api/jobs/{jobId}", { params, signal }));
        if (hasEnded(job)) {
          return job;
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
    for (let cursor: string | undefined; ; ) {
      const page = unwrap(await this.api.GET("/api/jobs", { params: { query: { ...filter, limit: 200, cursor } }, signal }));
      yield* page.jobs;
      if (page.nextCursor === null) {
        return;
      }
      cursor = page.nextCursor;
    }
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

/** Returns a request with its idempotency key, or with a new one. A job id of the client is also the key. */
function withKey<T extends { idempotencyKey?: string | null; jobId?: string }>(job: T): T {
  return job.idempotencyKey || job.jobId ? job : { ...job, idempotencyKey: crypto.randomUUID() };
}
