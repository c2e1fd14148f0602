import type { AnyJobTypes, JobRequest } from "../client.js";
import { type CallOptions, type Core, type Optional, pages, type Schemas } from "../core.js";
import { unwrap } from "../errors.js";
import type { operations } from "../schema.gen.js";

type Given = Optional<Schemas["ScheduleRequest"], "timeZone" | "paused">;
/** A cron expression with a request for a job. */
export type ScheduleRequest<Types extends object = AnyJobTypes> = Omit<Given, "job"> & { job: JobRequest<Types> };
export type Schedule = Schemas["Schedule"];
/** An instant of a schedule, and what became of it. */
export type Tick = Schemas["Tick"];
/** Of a schedule that is run by hand: its job. */
export type ScheduleRun = Schemas["ScheduleRun"];
/** A cron expression that need not be stored. */
export type ScheduleTimesQuery = NonNullable<operations["listScheduleTimes"]["parameters"]["query"]>;

/** The schedules: those of the key's owner, or those of `of`. */
export class Schedules<Types extends object = AnyJobTypes> {
  readonly #core: Core;
  readonly #query: { ownerId?: string };

  constructor(core: Core, ownerId?: string) {
    this.#core = core;
    this.#query = { ownerId };
  }

  /** The schedules of an owner, for an administrator's key and where authentication is off. */
  of(ownerId: string): Schedules<Types> {
    return new Schedules(this.#core, ownerId);
  }

  /** Creates a schedule. If there is one with its name, that is a ConflictError. */
  async create(schedule: ScheduleRequest<Types> & { name: string }, { signal }: CallOptions = {}): Promise<Schedule> {
    return unwrap(await this.#core.api.POST("/api/schedules", { body: this.#body(schedule), signal }));
  }

  /** Creates or replaces a schedule. With the same cron expression and time zone it continues; else its ticks begin anew. */
  async set(name: string, schedule: ScheduleRequest<Types>, { signal }: CallOptions = {}): Promise<Schedule> {
    return unwrap(await this.#core.api.PUT("/api/schedules/{name}", { params: this.#at(name), body: this.#body(schedule), signal }));
  }

  async get(name: string, { signal }: CallOptions = {}): Promise<Schedule> {
    return unwrap(await this.#core.api.GET("/api/schedules/{name}", { params: this.#at(name), signal }));
  }

  /** Yields all schedules by name, page by page. */
  list({ signal }: CallOptions = {}): AsyncGenerator<Schedule, void, undefined> {
    return pages(async (page) => {
      const params = { query: { ...this.#query, ...page } };
      const { schedules, nextCursor } = unwrap(await this.#core.api.GET("/api/schedules", { params, signal }));
      return [schedules, nextCursor];
    });
  }

  /** Deletes a schedule. Its jobs stay. */
  async delete(name: string, { signal }: CallOptions = {}): Promise<void> {
    unwrap(await this.#core.api.DELETE("/api/schedules/{name}", { params: this.#at(name), signal }));
  }

  /** Pauses a schedule: it submits no jobs until it is resumed. */
  async pause(name: string, { signal }: CallOptions = {}): Promise<Schedule> {
    const fetch = this.#core.repeat;
    return unwrap(await this.#core.api.POST("/api/schedules/{name}/pause", { params: this.#at(name), signal, fetch }));
  }

  /** Resumes a schedule. The ticks that fell into the pause are recorded as skipped. */
  async resume(name: string, { signal }: CallOptions = {}): Promise<Schedule> {
    const fetch = this.#core.repeat;
    return unwrap(await this.#core.api.POST("/api/schedules/{name}/resume", { params: this.#at(name), signal, fetch }));
  }

  /** Submits a job of a schedule now, also while it is paused. */
  async run(name: string, { signal }: CallOptions = {}): Promise<ScheduleRun> {
    return unwrap(await this.#core.api.POST("/api/schedules/{name}/run", { params: this.#at(name), signal }));
  }

  /** Yields the ticks of a schedule, newest first, page by page. The last 1,000 are kept, for 30 days. */
  ticks(name: string, { signal }: CallOptions = {}): AsyncGenerator<Tick, void, undefined> {
    return pages(async (page) => {
      const params = { path: { name }, query: { ...this.#query, ...page } };
      const { ticks, nextCursor } = unwrap(await this.#core.api.GET("/api/schedules/{name}/ticks", { params, signal }));
      return [ticks, nextCursor];
    });
  }

  /** Returns the next five ticks of a cron expression that is not stored. */
  async times(query: ScheduleTimesQuery, { signal }: CallOptions = {}): Promise<string[]> {
    return unwrap(await this.#core.api.GET("/api/schedule-times", { params: { query }, signal })).upcoming;
  }

  #at(name: string) {
    return { path: { name }, query: this.#query };
  }

  /** Where authentication is off, the owner of a schedule is that of its job. */
  #body(schedule: ScheduleRequest<Types>): Schemas["ScheduleRequest"] {
    return { ...schedule, job: { ...this.#query, ...schedule.job } } as Schemas["ScheduleRequest"];
  }
}
