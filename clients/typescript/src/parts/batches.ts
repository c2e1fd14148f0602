import type { AnyJobTypes, JobRequest } from "../client.js";
import { type CallOptions, type Core, held, type Optional, pages, type Schemas, withKey } from "../core.js";
import { unwrap } from "../errors.js";

type FollowUps = "onComplete" | "onFailure";

/** A request for a batch, with its first jobs. */
export type BatchRequest<Types extends object = AnyJobTypes> = Omit<Schemas["BatchRequest"], "jobs" | "closed" | FollowUps> &
  Partial<Record<FollowUps, JobRequest<Types>>> & { jobs?: readonly JobRequest<Types>[]; closed?: boolean };
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

/** The batches: groups of jobs that end when all of them have ended. */
export class Batches<Types extends object = AnyJobTypes> {
  readonly #core: Core;

  constructor(core: Core) {
    this.#core = core;
  }

  /**
   * Creates a batch with all of its jobs, or no batch, and returns its id. Other jobs can join it by their batchId until it is
   * closed. If it has no idempotencyKey it gets one, so that a repeated request makes no second batch.
   */
  async create(batch: BatchRequest<Types>, { signal }: CallOptions = {}): Promise<string> {
    const body = withKey(batch) as Schemas["BatchRequest"];
    return unwrap(await this.#core.api.POST("/api/batches", { body, signal, fetch: this.#core.repeat })).batchId;
  }

  async get(batchId: string, { signal }: CallOptions = {}): Promise<Batch> {
    return unwrap(await this.#core.api.GET("/api/batches/{batchId}", { params: { path: { batchId } }, signal }));
  }

  /** Returns a batch once it has ended, in any state. It survives a restart of the gateway. */
  async wait(batchId: string, { signal }: CallOptions = {}): Promise<Batch> {
    const params = { path: { batchId }, query: held };
    return this.#core.until(
      async (signal) => unwrap(await this.#core.api.GET("/api/batches/{batchId}", { params, signal })),
      (batch) => batch.finishedAt !== null,
      signal,
    );
  }

  /** Yields the batches that match a filter, newest first, page by page. Those that have not ended have no counts. */
  list(filter: BatchFilter = {}, { signal }: CallOptions = {}): AsyncGenerator<BatchSummary, void, undefined> {
    return pages(async (page) => {
      const params = { query: { ...filter, ...page } };
      const { batches, nextCursor } = unwrap(await this.#core.api.GET("/api/batches", { params, signal }));
      return [batches, nextCursor];
    });
  }

  /** Closes a batch, so that no more jobs can join it. */
  async close(batchId: string, { signal }: CallOptions = {}): Promise<void> {
    const params = { path: { batchId } };
    unwrap(await this.#core.api.POST("/api/batches/{batchId}/close", { params, signal, fetch: this.#core.repeat }));
  }

  /** Closes a batch and cancels its jobs by an operation, whose id it returns. */
  async cancel(batchId: string, { signal }: CallOptions = {}): Promise<string> {
    const params = { path: { batchId } };
    return unwrap(await this.#core.api.POST("/api/batches/{batchId}/cancel", { params, signal })).operationId;
  }

  /** Runs the FAILED and CANCELLED jobs of a batch again by an operation, whose id it returns. */
  async retry(batchId: string, { signal }: CallOptions = {}): Promise<string> {
    const params = { path: { batchId } };
    return unwrap(await this.#core.api.POST("/api/batches/{batchId}/retry", { params, signal })).operationId;
  }
}

/** The flows: closed batches whose jobs wait for each other. */
export class Flows<Types extends object = AnyJobTypes> {
  readonly #core: Core;

  constructor(core: Core) {
    this.#core = core;
  }

  /** Submits a flow. If it has no idempotencyKey it gets one, so that a repeated request makes no second flow. */
  async create(flow: FlowRequest<Types>, { signal }: CallOptions = {}): Promise<MadeFlow> {
    const body = withKey(flow) as Schemas["FlowRequest"];
    return unwrap(await this.#core.api.POST("/api/flows", { body, signal, fetch: this.#core.repeat }));
  }

  /** Returns a flow with its graph and the states of its jobs. */
  async get(flowId: string, { signal }: CallOptions = {}): Promise<Flow> {
    return unwrap(await this.#core.api.GET("/api/flows/{flowId}", { params: { path: { flowId } }, signal }));
  }

  /** Returns a flow once it has ended, in any state. It survives a restart of the gateway. */
  async wait(flowId: string, { signal }: CallOptions = {}): Promise<Flow> {
    const params = { path: { flowId }, query: held };
    return this.#core.until(
      async (signal) => unwrap(await this.#core.api.GET("/api/flows/{flowId}", { params, signal })),
      (flow) => flow.finishedAt !== null,
      signal,
    );
  }

  /** Yields the flows that match a filter, newest first, page by page. Those that have not ended have no counts. */
  list(filter: BatchFilter = {}, { signal }: CallOptions = {}): AsyncGenerator<FlowSummary, void, undefined> {
    return pages(async (page) => {
      const params = { query: { ...filter, ...page } };
      const { flows, nextCursor } = unwrap(await this.#core.api.GET("/api/flows", { params, signal }));
      return [flows, nextCursor];
    });
  }

  /** Cancels the jobs of a flow by an operation, whose id it returns. */
  async cancel(flowId: string, { signal }: CallOptions = {}): Promise<string> {
    return unwrap(await this.#core.api.POST("/api/flows/{flowId}/cancel", { params: { path: { flowId } }, signal })).operationId;
  }

  /**
   * Runs the FAILED and CANCELLED jobs of a flow again, in the order of its graph, and returns how many these may be.
   * With `from`, the jobs with these names and all that come after them run as new jobs; with `all`, the whole flow.
   */
  async retry(flowId: string, { signal, from, all }: CallOptions & Schemas["FlowRetryRequest"] = {}): Promise<number> {
    const body = from || all ? { from, all } : undefined;
    return unwrap(await this.#core.api.POST("/api/flows/{flowId}/retry", { params: { path: { flowId } }, body, signal })).jobs;
  }
}
