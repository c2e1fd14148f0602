import { type CallOptions, type Core, pages, type Schemas } from "../core.js";
import { unwrap } from "../errors.js";

/** A rule about failed jobs, and where its notices go. Only `to` is required, and in create() the name. */
export type AlertRequest = Partial<Schemas["AlertRequest"]> & Pick<Schemas["AlertRequest"], "to">;
export type Alert = Schemas["Alert"];
/** A message about the state of an alert. */
export type Notice = Schemas["Notice"];

/** The alerts: those of the key's owner, or those of `of`. */
export class Alerts {
  readonly #core: Core;
  readonly #query: { ownerId?: string };

  constructor(core: Core, ownerId?: string) {
    this.#core = core;
    this.#query = { ownerId };
  }

  /** The alerts of an owner, for an administrator's key and where authentication is off. */
  of(ownerId: string): Alerts {
    return new Alerts(this.#core, ownerId);
  }

  /** Creates an alert. If there is one with its name, that is a ConflictError. */
  async create(alert: AlertRequest & { name: string }, { signal }: CallOptions = {}): Promise<Alert> {
    return unwrap(await this.#core.api.POST("/api/alerts", { body: this.#body(alert), signal }));
  }

  /** Creates or replaces an alert. */
  async set(name: string, alert: AlertRequest, { signal }: CallOptions = {}): Promise<Alert> {
    return unwrap(await this.#core.api.PUT("/api/alerts/{name}", { params: this.#at(name), body: this.#body(alert), signal }));
  }

  async get(name: string, { signal }: CallOptions = {}): Promise<Alert> {
    return unwrap(await this.#core.api.GET("/api/alerts/{name}", { params: this.#at(name), signal }));
  }

  /** Yields all alerts by name, page by page. */
  list({ signal }: CallOptions = {}): AsyncGenerator<Alert, void, undefined> {
    return pages(async (page) => {
      const params = { query: { ...this.#query, ...page } };
      const { alerts, nextCursor } = unwrap(await this.#core.api.GET("/api/alerts", { params, signal }));
      return [alerts, nextCursor];
    });
  }

  /** Deletes an alert with its notices. */
  async delete(name: string, { signal }: CallOptions = {}): Promise<void> {
    unwrap(await this.#core.api.DELETE("/api/alerts/{name}", { params: this.#at(name), signal }));
  }

  /** Pauses an alert: it sends no notices until it is resumed. */
  async pause(name: string, { signal }: CallOptions = {}): Promise<Alert> {
    const fetch = this.#core.repeat;
    return unwrap(await this.#core.api.POST("/api/alerts/{name}/pause", { params: this.#at(name), signal, fetch }));
  }

  async resume(name: string, { signal }: CallOptions = {}): Promise<Alert> {
    const fetch = this.#core.repeat;
    return unwrap(await this.#core.api.POST("/api/alerts/{name}/resume", { params: this.#at(name), signal, fetch }));
  }

  /** Sends a notice now, and returns the id of the job that does. */
  async test(name: string, { signal }: CallOptions = {}): Promise<string> {
    return unwrap(await this.#core.api.POST("/api/alerts/{name}/test", { params: this.#at(name), signal })).jobId;
  }

  /** Yields the notices of an alert, newest first, page by page. The last 200 are kept. */
  notices(name: string, { signal }: CallOptions = {}): AsyncGenerator<Notice, void, undefined> {
    return pages(async (page) => {
      const params = { path: { name }, query: { ...this.#query, ...page } };
      const { notices, nextCursor } = unwrap(await this.#core.api.GET("/api/alerts/{name}/notices", { params, signal }));
      return [notices, nextCursor];
    });
  }

  #at(name: string) {
    return { path: { name }, query: this.#query };
  }

  #body(alert: AlertRequest): Schemas["AlertRequest"] {
    return { ...this.#query, ...alert } as Schemas["AlertRequest"];
  }
}
