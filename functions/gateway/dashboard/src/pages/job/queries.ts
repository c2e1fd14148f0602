import { queryOptions } from '@tanstack/react-query';
import { answer, api, type Schemas } from '../../api/client';
import { ENDED } from '../../ui/StatusBadge';

export type Job = Schemas['Job'];

export const jobQuery = (jobId: string) =>
  queryOptions({
    queryKey: ['job', jobId],
    queryFn: ({ signal }) => answer(api.GET('/api/jobs/{jobId}', { params: { path: { jobId } }, signal })),
  });

export function hasEnded(job: Pick<Job, 'status'>): boolean {
  return ENDED.includes(job.status);
}
