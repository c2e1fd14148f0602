import { useQuery } from '@tanstack/react-query';
import { answer, api, type Schemas } from '../../api/client';
import { useMay } from '../../api/me';
import { usePolling } from '../../live/live';

/** useLag reads how far each function lags behind its topics. Only an admin of the installation sees it. */
export function useLag() {
  return useQuery({
    queryKey: ['lag'],
    queryFn: ({ signal }) => answer(api.GET('/api/lag', { signal })),
    refetchInterval: usePolling(10_000),
    enabled: useMay()('installation'),
  });
}

/** useOldest reads the job that has waited longest; undefined if it is gone meanwhile. */
export function useOldest(oldest: Schemas['OldestWaiting']) {
  const jobId = oldest?.jobId ?? '';
  return useQuery({
    queryKey: ['oldest', jobId],
    queryFn: async ({ signal }) => {
      const { jobs } = await answer(api.GET('/api/jobs', { params: { query: { q: jobId, limit: 1 } }, signal }));
      return jobs.find((job) => job.jobId === jobId) ?? null;
    },
    refetchInterval: usePolling(10_000),
    enabled: jobId !== '',
  });
}
