import type { Job } from './queries';

/** requestOf is the JobRequest that would submit such a job; what had its default stays out of it. */
export function requestOf(job: Job): Record<string, unknown> {
  return {
    jobType: job.jobType,
    payload: job.payload,
    ...(job.queue !== 'default' && { queue: job.queue }),
    ...(job.priority !== 0 && { priority: job.priority }),
    ...(job.maxRetryCount !== 3 && { maxRetryCount: job.maxRetryCount }),
    ...(job.tags.length > 0 && { tags: job.tags }),
    ...(job.orderingKey && { orderingKey: job.orderingKey }),
    ...(job.after.length > 0 && { after: job.after, onDependencyFailure: job.onDependencyFailure }),
    ...(job.callbackUrl && { callbackUrl: job.callbackUrl }),
  };
}

/** curlOf submits a job like this one from a POSIX shell. */
export function curlOf(job: Job, origin: string): string {
  return curl(origin, JSON.stringify(requestOf(job), null, 2));
}

export function curl(origin: string, body: string): string {
  return [
    `curl ${origin}/api/jobs \\`,
    `  -H "Authorization: Bearer $JOBWEAVER_API_KEY" \\`,
    `  -H 'Content-Type: application/json' \\`,
    `  -d ${quote(body)}`,
  ].join('\n');
}

/** quote makes one word of a text: within single quotes a shell reads all as it is but the quote itself. */
export function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
