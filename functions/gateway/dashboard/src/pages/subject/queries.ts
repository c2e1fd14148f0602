import { useQuery } from '@tanstack/react-query';
import { answer, api } from '../../api/client';
import { useMay } from '../../api/me';
import { jobTypesQuery } from '../../api/queries';
import { usePolling } from '../../live/live';

/** Subject is what a page is about: a queue or a job type, by its name. */
export interface Subject {
  kind: 'queue' | 'type';
  name: string;
}

/** filterOf returns the filter of the subject's jobs. */
export function filterOf({ kind, name }: Subject): Record<string, string> {
  return { [kind]: name };
}

export function useSubjectStats(subject: Subject) {
  return useQuery({
    queryKey: ['stats', subject],
    queryFn: ({ signal }) => answer(api.GET('/api/stats', { params: { query: filterOf(subject) }, signal })),
    refetchInterval: usePolling(3000),
  });
}

/** SAMPLE is for how many waiting jobs the page looks at what blocks them. */
const SAMPLE = 200;

/** useWaiting reads the newest waiting jobs, with what blocks them. */
export function useWaiting(subject: Subject, enabled: boolean) {
  return useQuery({
    queryKey: ['waiting', subject],
    queryFn: ({ signal }) => answer(api.GET('/api/jobs', { params: { query: { ...filterOf(subject), status: ['PENDING'], limit: SAMPLE } }, signal })),
    refetchInterval: usePolling(5000),
    enabled,
  });
}

/** useControl reads the pause and the limits of the subject; version 0 if it never had any. Only the installation sees them. */
export function useControl({ kind, name }: Subject) {
  return useQuery({
    queryKey: ['controls', kind, name],
    queryFn: ({ signal }) => answer(api.GET('/api/controls/{kind}/{name}', { params: { path: { kind, name } }, signal })),
    refetchInterval: usePolling(5000),
    enabled: useMay()('installation'),
  });
}

/** Known is whether the installation has the queue or the job type, and whether a queue is paused. */
interface Known {
  is: boolean | undefined; // undefined: not yet read
  paused: boolean;
}

export function useKnown({ kind, name }: Subject): Known {
  const queues = useQuery({
    queryKey: ['queues'],
    queryFn: ({ signal }) => answer(api.GET('/api/queues', { signal })),
    enabled: kind === 'queue',
    refetchInterval: usePolling(5000),
  });
  const types = useQuery({ ...jobTypesQuery, enabled: kind === 'type' });
  if (kind === 'type') {
    return { is: types.data?.jobTypes.some((type) => type.name === name), paused: false };
  }
  const found = queues.data?.queues.find(({ queue }) => queue === name);
  return { is: queues.data && found !== undefined, paused: found?.paused ?? false };
}
