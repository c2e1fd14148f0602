import { stringify } from '../../api/json';
import type { Job } from './queries';

/** requestOf returns a JobRequest for a job like this one, without members that have their default. */
export function requestOf(job: Job): Record<string, unknown> {
  return {
    jobType: job.jobType,
    payload: job.payload,
    ...(job.queue !== 'default' && { queue: job.queue }),
    ...(job.priority !== 0 && { priority: job.priority }),
    ...(job.maxRetryCount !== 3 && { maxRetryCount: job.maxRetryCount }),
    ...(job.tags.length > 0 && { tags: job.tags }),
    ...(job.orderingKey && { orderingKey: job.orderingKey }),
    ...(job.unique && { unique: job.unique }),
    ...(job.throttle && { throttle: job.throttle }),
    ...(job.singleton && { singleton: job.singleton }),
    ...(job.debounce && { debounce: job.debounce }),
    ...(job.after.length > 0 && { after: job.after, onDependencyFailure: job.onDependencyFailure }),
    ...(job.callbackUrl && { callbackUrl: job.callbackUrl }),
  };
}

/** curlOf returns a POSIX shell command that submits a job like this one. */
export function curlOf(job: Job, origin: string): string {
  return curl(origin, stringify(requestOf(job), 2));
}

export function curl(origin: string, body: string): string {
  return [
    `curl ${origin}/api/jobs \\`,
    `  -H "Authorization: Bearer $JOBWEAVER_API_KEY" \\`,
    `  -H 'Content-Type: application/json' \\`,
    `  -d ${quote(body)}`,
  ].join('\n');
}

/** quote makes one shell word of a text: within single quotes only the quote itself is special. */
export function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
