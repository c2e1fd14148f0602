import { type CallOptions, type Core, held, pages, type Schemas, withKey } from "../core.js";
import { unwrap } from "../errors.js";
import type { operations } from "../schema.gen.js";

/** A command for the jobs of a list, or for all that match a filter. */
export type OperationRequest = Schemas["OperationRequest"];
/** An operation in a list. */
export type OperationSummary = Schemas["OperationFields"];
/** An operation with the first jobs that it skipped. */
export type Operation = Schemas["Operation"];

type Query<Name extends keyof operations> = NonNullable<operations[Name]["parameters"]["query"]>;
/** Selects FAILED jobs. */
export type DeadFilter = Omit<Query<"listDeadJobs">, "limit" | "cursor" | "page" | "size">;
/** FAILED jobs, counted by job type and error code. */
export type DeadGroups = Schemas["DeadGroups"];
/** A request to the callbackUrl of a job. */
export type Delivery = Schemas["Delivery"];
/** A Kafka record that a function could not use. */
export type RejectedRecord = Schemas["RejectedRecord"];
/** A rejected record with its key, headers and value. */
export type WholeRejectedRecord = Schemas["WholeRejectedRecord"];

/** The operations: commands for many jobs. */
export class Operations {
  readonly #core: Core;

  constructor(core: Core) {
    this.#core = core;
  }

  /** Starts an operation. If it has no idempotencyKey it gets one, so that a repeated request starts no second one. */
  async start(operation: OperationRequest, { signal }: CallOptions = {}): Promise<Operation> {
    return unwrap(await this.#core.api.POST("/api/operations", { body: withKey(operation), signal, fetch: this.#core.repeat }));
  }

  async get(operationId: string, { signal }: CallOptions = {}): Promise<Operation> {
    return unwrap(await this.#core.api.GET("/api/operations/{operationId}", { params: { path: { operationId } }, signal }));
  }

  /** Returns an operation once it has ended, COMPLETED or ABORTED. It survives a restart of the gateway. */
  async wait(operationId: string, { signal }: CallOptions = {}): Promise<Operation> {
    const params = { path: { operationId }, query: held };
    return this.#core.until(
      async (signal) => unwrap(await this.#core.api.GET("/api/operations/{operationId}", { params, signal })),
      (operation) => operation.finishedAt !== null,
      signal,
    );
  }

  /** Yields the operations, newest first, page by page. Those that have ended are kept for 30 days. */
  list({ signal }: CallOptions = {}): AsyncGenerator<OperationSummary, void, undefined> {
    return pages(async (query) => {
      const { operations, nextCursor } = unwrap(await this.#core.api.GET("/api/operations", { params: { query }, signal }));
      return [operations, nextCursor];
    });
  }

  /** Stops an operation before it reaches more jobs. Commands that were given stay in force. */
  async abort(operationId: string, { signal }: CallOptions = {}): Promise<Operation> {
    const params = { path: { operationId } };
    return unwrap(await this.#core.api.POST("/api/operations/{operationId}/abort", { params, signal, fetch: this.#core.repeat }));
  }
}

/** The FAILED jobs. An operation runs many of them again. */
export class Dead {
  readonly #core: Core;

  constructor(core: Core) {
    this.#core = core;
  }

  /** Yields the FAILED jobs that match a filter, newest first, page by page. */
  list(filter: DeadFilter = {}, { signal }: CallOptions = {}): AsyncGenerator<Schemas["JobSummary"], void, undefined> {
    return pages(async (page) => {
      const found = unwrap(await this.#core.api.GET("/api/jobs/dead", { params: { query: { ...filter, ...page } }, signal }));
      const { jobs, nextCursor } = found as Schemas["JobPage"];
      return [jobs, nextCursor];
    });
  }

  /** Counts FAILED jobs by job type and error code, the largest groups first: at most `limit`, which is up to 200. */
  async groups(query: Query<"listDeadJobGroups"> = {}, { signal }: CallOptions = {}): Promise<DeadGroups> {
    return unwrap(await this.#core.api.GET("/api/jobs/dead/groups", { params: { query }, signal }));
  }
}

/** The deliveries: the requests by which JobWeaver reports the ends of jobs to their callbackUrl. */
export class Deliveries {
  readonly #core: Core;

  constructor(core: Core) {
    this.#core = core;
  }

  /** Yields the deliveries of all jobs, newest first, page by page. */
  list(filter: { status?: Schemas["DeliveryStatus"] } = {}, { signal }: CallOptions = {}): AsyncGenerator<Delivery, void, undefined> {
    return pages(async (page) => {
      const params = { query: { ...filter, ...page } };
      const { deliveries, nextCursor } = unwrap(await this.#core.api.GET("/api/deliveries", { params, signal }));
      return [deliveries, nextCursor];
    });
  }

  /** Returns the last 200 deliveries of a job, newest first. */
  async ofJob(jobId: string, { signal }: CallOptions = {}): Promise<Delivery[]> {
    return unwrap(await this.#core.api.GET("/api/jobs/{jobId}/deliveries", { params: { path: { jobId } }, signal })).deliveries;
  }

  /** Sends a delivery once more. */
  async retry(jobId: string, version: number, { signal }: CallOptions = {}): Promise<Delivery> {
    const params = { path: { jobId, version: String(version) } };
    return unwrap(await this.#core.api.POST("/api/jobs/{jobId}/deliveries/{version}/retry", { params, signal }));
  }
}

/** Selects rejected records: they must match all members. */
export type RejectedFilter = Omit<Query<"listRejected">, "limit" | "cursor" | "redriven"> & { redriven?: boolean };

/** The rejected records. */
export class Rejected {
  readonly #core: Core;

  constructor(core: Core) {
    this.#core = core;
  }

  /** Yields the rejected records that match a filter, newest first, page by page. */
  list({ redriven, ...filter }: RejectedFilter = {}, { signal }: CallOptions = {}): AsyncGenerator<RejectedRecord, void, undefined> {
    const query = { ...filter, redriven: redriven === undefined ? undefined : (String(redriven) as "true" | "false") };
    return pages(async (page) => {
      const params = { query: { ...query, ...page } };
      const { rejected, nextCursor } = unwrap(await this.#core.api.GET("/api/rejected", { params, signal }));
      return [rejected, nextCursor];
    });
  }

  async get(rejectedId: string, { signal }: CallOptions = {}): Promise<WholeRejectedRecord> {
    return unwrap(await this.#core.api.GET("/api/rejected/{rejectedId}", { params: { path: { rejectedId } }, signal }));
  }

  /** Publishes a record again on its topic, once. */
  async redrive(rejectedId: string, { signal }: CallOptions = {}): Promise<RejectedRecord> {
    return unwrap(await this.#core.api.POST("/api/rejected/{rejectedId}/redrive", { params: { path: { rejectedId } }, signal }));
  }

  /** Deletes a stored record. */
  async discard(rejectedId: string, { signal }: CallOptions = {}): Promise<RejectedRecord> {
    return unwrap(await this.#core.api.DELETE("/api/rejected/{rejectedId}", { params: { path: { rejectedId } }, signal }));
  }
}
