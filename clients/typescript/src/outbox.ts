import type { JobRequest } from "./client.js";
import { codecOf } from "./json.js";

/** A connection of node-postgres, or any object with such a method. */
export interface Connection {
  query(text: string, values: string[]): Promise<{ rows: unknown[] }>;
}

/**
 * The statement that enqueues a job in a transaction of your own database, where `jobweaver outbox install` has made
 * jobweaver.enqueue. It returns one row with the job's id, as enqueue. The id is the job's idempotency key, so the request has no other.
 */
export function enqueueStatement(job: JobRequest): { text: string; values: [string, string, string] } {
  const { jobType, payload, ...options } = job;
  if (options.idempotencyKey !== undefined || options.jobId !== undefined) {
    throw new TypeError("an enqueued job is given its id, and needs no idempotencyKey or jobId");
  }
  return {
    text: "select jobweaver.enqueue($1, $2::text::jsonb, $3::text::jsonb) as enqueue",
    values: [jobType, codecOf("lossless").stringify(payload ?? null), JSON.stringify(options)],
  };
}

/** Enqueues a job in the transaction of a connection and returns its id. The job exists if and only if the transaction commits. */
export async function enqueue(connection: Connection, job: JobRequest): Promise<string> {
  const { text, values } = enqueueStatement(job);
  const { rows } = await connection.query(text, values);
  return (rows[0] as { enqueue: string }).enqueue;
}
