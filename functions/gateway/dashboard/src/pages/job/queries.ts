import { queryOptions } from '@tanstack/react-query';
import { answer, api, type Schemas } from '../../api/client';
import { ENDED } from '../../ui/StatusBadge';

export type Job = Schemas['Job'];
export type LogLine = Schemas['LogLine'];

export const jobQuery = (jobId: string) =>
  queryOptions({
    queryKey: ['job', jobId],
    queryFn: ({ signal }) => answer(api.GET('/api/jobs/{jobId}', { params: { path: { jobId } }, signal })),
  });

export function hasEnded(job: Pick<Job, 'status'>): boolean {
  return ENDED.includes(job.status);
}

/** readLogs reads the newest log lines of an attempt, or of all, or those before a cursor. */
export function readLogs(jobId: string, attempt: string, cursor: string | null, signal: AbortSignal) {
  const query = { ...(attempt !== 'all' && { attempt: Number(attempt) }), ...(cursor !== null && { cursor }) };
  return answer(api.GET('/api/jobs/{jobId}/logs', { params: { path: { jobId }, query }, signal }));
}

export const logsQuery = (jobId: string, attempt: string) =>
  queryOptions({
    queryKey: ['job', jobId, 'logs', attempt],
    queryFn: ({ signal }) => readLogs(jobId, attempt, null, signal),
  });
