import { type CallOptions, type Core, pages, type Schemas } from "../core.js";
import { unwrap } from "../errors.js";

export type Queue = Schemas["QueueInfo"];
/** What waits and runs of a fairness key in a queue. */
export type Share = Schemas["Share"];
/** What a control is of. */
export type ControlKind = Schemas["ControlKind"];
/** A whole control: what is left out is not limited. */
export type ControlRequest = Partial<Schemas["ControlRequest"]>;
export type Control = Schemas["Control"];

/** The queues. */
export class Queues {
  readonly #core: Core;

  constructor(core: Core) {
    this.#core = core;
  }

  /** Creates a queue. One that is there is left as it is, and a removal is taken back. */
  async create(queue: string, { signal, workers = "runjob" }: CallOptions & { workers?: Schemas["QueueWorkers"] } = {}): Promise<Queue> {
    return unwrap(await this.#core.api.PUT("/api/queues/{queue}", { params: { path: { queue } }, body: { workers }, signal }));
  }

  /** Returns a queue. Once it is removed, this throws a NotFoundError. */
  async get(queue: string, { signal }: CallOptions = {}): Promise<Queue> {
    return unwrap(await this.#core.api.GET("/api/queues/{queue}", { params: { path: { queue } }, signal }));
  }

  /** Returns all queues. */
  async list({ signal }: CallOptions = {}): Promise<Queue[]> {
    return unwrap(await this.#core.api.GET("/api/queues", { signal })).queues;
  }

  /**
   * Begins the removal of a created queue. While jobs in it have not ended, that is a ConflictError, unless drain is true: then
   * the queue is removed when they have ended.
   */
  async remove(queue: string, { signal, drain = false }: CallOptions & { drain?: boolean } = {}): Promise<void> {
    unwrap(await this.#core.api.DELETE("/api/queues/{queue}", { params: { path: { queue }, query: { drain } }, signal }));
  }

  /** Yields what waits and runs for each fairness key of a queue, most waiting jobs first; `q` is a part of the key. */
  shares(queue: string, { signal, q }: CallOptions & { q?: string } = {}): AsyncGenerator<Share, void, undefined> {
    return pages(async (page) => {
      const params = { path: { queue }, query: { q, ...page } };
      const { shares, nextCursor } = unwrap(await this.#core.api.GET("/api/queues/{queue}/shares", { params, signal }));
      return [shares, nextCursor];
    });
  }
}

/** The controls: pauses, limits and weights of queues, job types, owners and fairness keys. */
export class Controls {
  readonly #core: Core;

  constructor(core: Core) {
    this.#core = core;
  }

  /** Returns all controls. */
  async list({ signal }: CallOptions = {}): Promise<Control[]> {
    return unwrap(await this.#core.api.GET("/api/controls", { signal })).controls;
  }

  /** Returns a control. One that was never set has neither a pause nor limits, and version 0. */
  async get(kind: ControlKind, name: string, { signal }: CallOptions = {}): Promise<Control> {
    return unwrap(await this.#core.api.GET("/api/controls/{kind}/{name}", { params: { path: { kind, name } }, signal }));
  }

  /** Sets a whole control: `set("queue", "mails", { maxRunning: 5 })` also ends a pause. */
  async set(kind: ControlKind, name: string, control: ControlRequest, { signal }: CallOptions = {}): Promise<Control> {
    const body = control as Schemas["ControlRequest"];
    return unwrap(await this.#core.api.PUT("/api/controls/{kind}/{name}", { params: { path: { kind, name } }, body, signal }));
  }

  /** Pauses a queue, a job type, an owner or a fairness key: no attempts start. Its limits stay. */
  async pause(kind: ControlKind, name: string, { signal }: CallOptions = {}): Promise<Control> {
    const params = { path: { kind, name } };
    return unwrap(await this.#core.api.POST("/api/controls/{kind}/{name}/pause", { params, signal, fetch: this.#core.repeat }));
  }

  /** Ends a pause. The limits stay. */
  async resume(kind: ControlKind, name: string, { signal }: CallOptions = {}): Promise<Control> {
    const params = { path: { kind, name } };
    return unwrap(await this.#core.api.POST("/api/controls/{kind}/{name}/resume", { params, signal, fetch: this.#core.repeat }));
  }

  /** Removes the pause, the limits and the weight. */
  async delete(kind: ControlKind, name: string, { signal }: CallOptions = {}): Promise<Control> {
    return unwrap(await this.#core.api.DELETE("/api/controls/{kind}/{name}", { params: { path: { kind, name } }, signal }));
  }
}
