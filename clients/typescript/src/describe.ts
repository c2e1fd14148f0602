import type { JobWeaver } from "./client.js";
import { unwrap } from "./errors.js";
import type { AnyTask } from "./task.js";

/** Sends the definition of a task, so that the gateway accepts and checks its jobs, and its schedules. */
export async function describe(api: JobWeaver["api"], { type, definition, schedules }: AnyTask, signal: AbortSignal): Promise<void> {
  const params = { path: { type } };
  unwrap(await api.PUT("/api/job-types/{type}", { params, body: definition, signal }));
  unwrap(await api.PUT("/api/job-types/{type}/schedules", { params, body: { schedules }, signal }));
}
