import { type CallOptions, type Core, pages, type Schemas } from "../core.js";
import { unwrap } from "../errors.js";
import type { operations } from "../schema.gen.js";

type Query<Name extends keyof operations> = NonNullable<operations[Name]["parameters"]["query"]>;

/** A job type with the JSON Schemas of its payload and its output. */
export type JobType = Schemas["JobTypeInfo"];
/** A worker, and the attempts that it runs. */
export type WorkerInfo = Schemas["Worker"];
export type WorkerDrain = Schemas["WorkerDrain"];
/** An endpoint for the webhooks of another service. */
export type Hook = Schemas["Hook"];
/** A request for an API key. */
export type KeyRequest = Schemas["KeyRequest"];
/** What is stored of an API key: not the key itself. */
export type StoredKey = Schemas["StoredKey"];
/** An API key with its secret, which only the answer that makes it has. */
export type NewKey = Schemas["NewKey"];
export type AuditEntry = Schemas["AuditEntry"];
export type Me = Schemas["Me"];
export type Stats = Schemas["Stats"];
export type Lag = Schemas["Lag"];
export type Health = Schemas["Health"];
export type WebhookSecrets = Schemas["WebhookSecrets"];

/** The job types. */
export class JobTypes {
  readonly #core: Core;

  constructor(core: Core) {
    this.#core = core;
  }

  /** Returns all job types. */
  async list({ signal }: CallOptions = {}): Promise<JobType[]> {
    return unwrap(await this.#core.api.GET("/api/job-types", { signal })).jobTypes;
  }

  async get(type: string, { signal }: CallOptions = {}): Promise<JobType> {
    return unwrap(await this.#core.api.GET("/api/job-types/{type}", { params: { path: { type } }, signal }));
  }

  /** Forgets a job type that workers have run: further jobs of it are refused until a worker describes it again. */
  async delete(type: string, { signal }: CallOptions = {}): Promise<void> {
    unwrap(await this.#core.api.DELETE("/api/job-types/{type}", { params: { path: { type } }, signal }));
  }
}

/** The workers. */
export class Workers {
  readonly #core: Core;

  constructor(core: Core) {
    this.#core = core;
  }

  /** Returns the workers with the attempts that they run, and the job types whose jobs wait without a worker. */
  async list({ signal }: CallOptions = {}): Promise<Schemas["Workers"]> {
    return unwrap(await this.#core.api.GET("/api/workers", { signal }));
  }

  /** Drains a worker: it gets no further attempts and finishes those that it runs. */
  async drain(workerId: string, { signal }: CallOptions = {}): Promise<WorkerDrain> {
    return unwrap(await this.#core.api.PUT("/api/workers/{workerId}/drain", { params: { path: { workerId } }, signal }));
  }

  /** Lets a draining worker take attempts again. */
  async undrain(workerId: string, { signal }: CallOptions = {}): Promise<WorkerDrain> {
    return unwrap(await this.#core.api.DELETE("/api/workers/{workerId}/drain", { params: { path: { workerId } }, signal }));
  }
}

/** The hooks: endpoints for the webhooks of other services. HOOKS_FILE defines them. */
export class Hooks {
  readonly #core: Core;

  constructor(core: Core) {
    this.#core = core;
  }

  /** Returns all hooks, with what they have accepted and why they last rejected a request. */
  async list({ signal }: CallOptions = {}): Promise<Hook[]> {
    return unwrap(await this.#core.api.GET("/api/hooks", { signal })).hooks;
  }
}

/** The API keys. */
export class Keys {
  readonly #core: Core;

  constructor(core: Core) {
    this.#core = core;
  }

  /** Creates an API key. Only this answer has the key. */
  async create(key: KeyRequest, { signal }: CallOptions = {}): Promise<NewKey> {
    return unwrap(await this.#core.api.POST("/api/keys", { body: key, signal }));
  }

  async get(keyId: string, { signal }: CallOptions = {}): Promise<StoredKey> {
    return unwrap(await this.#core.api.GET("/api/keys/{keyId}", { params: { path: { keyId } }, signal }));
  }

  /** Yields the keys, also revoked ones, page by page. */
  list(filter: { ownerId?: string } = {}, { signal }: CallOptions = {}): AsyncGenerator<StoredKey, void, undefined> {
    return pages(async (page) => {
      const { keys, nextCursor } = unwrap(await this.#core.api.GET("/api/keys", { params: { query: { ...filter, ...page } }, signal }));
      return [keys, nextCursor];
    });
  }

  /** Revokes a key: within 10 s every gateway refuses it. */
  async revoke(keyId: string, { signal }: CallOptions = {}): Promise<StoredKey> {
    return unwrap(await this.#core.api.DELETE("/api/keys/{keyId}", { params: { path: { keyId } }, signal }));
  }

  /** Replaces a key by a new one with the same rights. The old one expires after overlapSeconds, by default a day. */
  async rotate(keyId: string, { signal, overlapSeconds = 86_400 }: CallOptions & { overlapSeconds?: number } = {}): Promise<NewKey> {
    const body = { overlapSeconds };
    return unwrap(await this.#core.api.POST("/api/keys/{keyId}/rotate", { params: { path: { keyId } }, body, signal }));
  }
}

/** Selects entries: they must match all members. */
export type AuditFilter = Omit<Query<"listAudit">, "limit" | "cursor">;

/** The audit log. */
export class Audit {
  readonly #core: Core;

  constructor(core: Core) {
    this.#core = core;
  }

  /** Yields the entries that match a filter, newest first, page by page. */
  list(filter: AuditFilter = {}, { signal }: CallOptions = {}): AsyncGenerator<AuditEntry, void, undefined> {
    return pages(async (page) => {
      const { entries, nextCursor } = unwrap(await this.#core.api.GET("/api/audit", { params: { query: { ...filter, ...page } }, signal }));
      return [entries, nextCursor];
    });
  }
}

/** The installation as a whole. */
export class Installation {
  readonly #core: Core;

  constructor(core: Core) {
    this.#core = core;
  }

  /** Returns the owner, the actor and the roles of this client's key. */
  async me({ signal }: CallOptions = {}): Promise<Me> {
    return unwrap(await this.#core.api.GET("/api/me", { signal }));
  }

  /** Returns the names of at most 200 owners; `q` is a part of the name. */
  async owners({ signal, q }: CallOptions & { q?: string } = {}): Promise<string[]> {
    return unwrap(await this.#core.api.GET("/api/owners", { params: { query: { q, limit: 200 } }, signal })).owners;
  }

  /** Returns how many jobs there are, how many end, and how long they take; also of one queue or job type. */
  async stats({ signal, ...query }: CallOptions & { queue?: string; type?: string } = {}): Promise<Stats> {
    return unwrap(await this.#core.api.GET("/api/stats", { params: { query }, signal }));
  }

  /** Returns how far functions lag behind their topics. */
  async lag({ signal }: CallOptions = {}): Promise<Lag> {
    return unwrap(await this.#core.api.GET("/api/lag", { signal }));
  }

  async health({ signal }: CallOptions = {}): Promise<Health> {
    return unwrap(await this.#core.api.GET("/api/health", { signal }));
  }

  /** Returns the keys by which receivers verify the messages of JobWeaver, your own or those of an owner. */
  async webhookSecrets({ signal, ownerId }: CallOptions & { ownerId?: string } = {}): Promise<WebhookSecrets> {
    return unwrap(await this.#core.api.GET("/api/webhook-secrets", { params: { query: { ownerId } }, signal }));
  }
}
