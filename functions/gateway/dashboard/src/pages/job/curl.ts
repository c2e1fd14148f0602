import { stringify } from '../../api/json';
import type { Job } from './queries';

/**
 * requestOf returns the JobRequest of a job like this one, without members that have the same default everywhere: the
 * installation may have other retries and timeouts for a job type. The idempotency key would find the job itself, and an
 * instant that has passed would be refused, or is over.
 */
export function requestOf(job: Job, now: Date): Record<string, unknown> {
  const ahead = (at: string | null) => at !== null && Date.parse(at) > now.getTime();
  const setsStart = job.throttle ?? job.debounce; // runAt is then not the client's
  return {
    jobType: job.jobType,
    payload: job.payload,
    ...(job.queue !== 'default' && { queue: job.queue }),
    ...(job.priority !== 0 && { priority: job.priority }),
    maxRetryCount: job.maxRetryCount,
    ...(job.retryPolicy && { retryPolicy: job.retryPolicy }),
    ...(job.timeoutMs !== undefined && { timeoutMs: job.timeoutMs }),
    ...(!setsStart && ahead(job.runAt) && { runAt: job.runAt }),
    ...(ahead(job.expiresAt) && { expiresAt: job.expiresAt }),
    ...(job.tags.length > 0 && { tags: job.tags }),
    ...(job.ownerId && { ownerId: job.ownerId }),
    ...(job.orderingKey && { orderingKey: job.orderingKey }),
    ...(job.fairnessKey && job.fairnessKey !== job.ownerId && { fairnessKey: job.fairnessKey }),
    ...(job.keepBuild && { keepBuild: true }),
    ...(job.batchId && { batchId: job.batchId }),
    ...(job.unique && { unique: job.unique }),
    ...(job.throttle && { throttle: job.throttle }),
    ...(job.singleton && { singleton: job.singleton }),
    ...(job.debounce && { debounce: job.debounce }),
    ...(job.after.length > 0 && { after: dependencies(job), onDependencyFailure: job.onDependencyFailure }),
    ...(job.callbackUrl && { callbackUrl: job.callbackUrl }),
  };
}

function dependencies({ after, conditions }: Job): unknown[] {
  return after.map((jobId) => (conditions?.[jobId] ? { jobId, on: conditions[jobId] } : jobId));
}

/** curlOf returns a POSIX shell command that submits a job like this one. */
export function curlOf(job: Job, origin: string, withKey: boolean): string {
  return curl(`${origin}/api/jobs`, stringify(requestOf(job, new Date()), 2), withKey);
}

/** curl returns a shell command that posts a text, with an API key if the installation asks for one. */
export function curl(address: string, body: string, withKey: boolean, contentType = 'application/json'): string {
  return [
    `curl ${address} \\`,
    ...(withKey ? [`  -H "Authorization: Bearer $JOBWEAVER_API_KEY" \\`] : []),
    `  -H 'Content-Type: ${contentType}' \\`,
    `  -d ${quote(body)}`,
  ].join('\n');
}

/** quote makes one shell word of a text: within single quotes only the quote itself is special. */
export function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
