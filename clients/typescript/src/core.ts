import type { Client } from "openapi-fetch";

import { isUnreached } from "./errors.js";
import type { components, paths } from "./schema.gen.js";
import { backoff, sleep, type Transport } from "./transport.js";

export type Schemas = components["schemas"];
export type Optional<T, K extends keyof T> = Omit<T, K> & Partial<Pick<T, K>>;

export interface CallOptions {
  signal?: AbortSignal;
}

/** The query of a request that waits; the API allows 60 s. */
export const held = { wait: "30s" };
const awayAtMost = 120_000; // ms that a call waits for a gateway that restarts

/** What the parts of a client share. */
export class Core {
  constructor(
    readonly api: Client<paths>,
    private readonly transport: Transport,
  ) {}

  /** The fetch of a request that does nothing twice when it is repeated. */
  readonly repeat = (request: Request): Promise<Response> => this.transport.send(request, true);

  /** Reads until something has ended. Each request is held until then, or for a while. */
  async until<T>(read: (signal: AbortSignal) => Promise<T>, ended: (now: T) => boolean, own?: AbortSignal): Promise<T> {
    const signal = this.transport.signal(own);
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
}

/** Yields all entries of a list, page by page. */
export async function* pages<T>(
  read: (page: { limit: number; cursor?: string }) => Promise<[T[], string | null]>,
): AsyncGenerator<T, void, undefined> {
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
export function withKey<T extends { idempotencyKey?: string | null; jobId?: string }>(job: T): T {
  return job.idempotencyKey || job.jobId ? job : { ...job, idempotencyKey: crypto.randomUUID() };
}
