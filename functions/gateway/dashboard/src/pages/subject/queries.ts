import { useQuery } from '@tanstack/react-query';
import { answer, api } from '../../api/client';
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

/** useControl reads the pause and the limits of the subject; version 0 if it never had any. */
export function useControl({ kind, name }: Subject) {
  return useQuery({
    queryKey: ['controls', kind, name],
    queryFn: ({ signal }) => answer(api.GET('/api/controls/{kind}/{name}', { params: { path: { kind, name } }, signal })),
    refetchInterval: usePolling(5000),
  });
}

/** useKnown returns whether the installation knows the queue or the job type; undefined: not yet read. */
export function useKnown({ kind, name }: Subject): boolean | undefined {
  const queues = useQuery({
    queryKey: ['queues'],
    queryFn: ({ signal }) => answer(api.GET('/api/queues', { signal })),
    enabled: kind === 'queue',
    refetchInterval: usePolling(10_000),
  });
  const types = useQuery({ ...jobTypesQuery, enabled: kind === 'type' });
  return kind === 'queue' ? queues.data?.queues.some(({ queue }) => queue === name) : types.data?.jobTypes.some((type) => type.name === name);
}
