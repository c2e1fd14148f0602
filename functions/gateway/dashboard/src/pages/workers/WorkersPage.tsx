import { useQueries, useQuery } from '@tanstack/react-query';
import { answer, api } from '../../api/client';
import { workersQuery } from '../../api/queries';
import { PageHeader } from '../../app/PageHeader';
import { usePolling } from '../../live/live';
import { EmptyState } from '../../ui/EmptyState';
import { ErrorBox } from '../../ui/ErrorBox';
import { Skeleton } from '../../ui/Skeleton';
import { QueuesCard } from './QueuesCard';
import { summary } from './summary';
import { WithoutWorkerCard } from './WithoutWorkerCard';
import { type Worker, WorkerCard } from './WorkerCard';

const TYPES = 10; // of which the usual times are read

export default function WorkersPage() {
  const polling = usePolling(3000);
  const list = useQuery({ ...workersQuery, refetchInterval: polling });
  const workers = list.data?.workers ?? [];
  const usual = useUsual(workers);
  return (
    <div className="stack">
      <PageHeader title="Workers" lead={list.data ? summary(workers) : 'What runs the jobs.'} />
      {list.isError && <ErrorBox error={list.error} onRetry={() => void list.refetch()} />}
      {list.isPending && <Skeleton lines={6} />}
      {list.isSuccess && workers.length === 0 && (
        <EmptyState icon="workers" title="No worker has reported">
          Jobs are accepted and wait. Start a worker (the function <code>runjob</code>) that reaches this installation's Kafka and its own
          database; it shows up here with its first heartbeat, within seconds.
        </EmptyState>
      )}
      {list.data && <WithoutWorkerCard types={list.data.withoutWorker} />}
      {workers.map((worker) => (
        <WorkerCard key={worker.workerId} worker={worker} usual={usual} />
      ))}
      <QueuesCard />
    </div>
  );
}

/** useUsual returns how long 95 % of the jobs ran that ended in the last day, by job type, in ms. */
function useUsual(workers: readonly Worker[]): ReadonlyMap<string, number> {
  const types = [...new Set(workers.flatMap(({ attempts }) => attempts.flatMap(({ jobType }) => jobType ?? [])))].sort().slice(0, TYPES);
  const stats = useQueries({
    queries: types.map((type) => ({
      queryKey: ['stats', type],
      queryFn: () => answer(api.GET('/api/stats', { params: { query: { type } } })),
      staleTime: 60_000,
    })),
  });
  return new Map(
    types.flatMap((type, i) => {
      const p95 = stats[i]?.data?.latency['24h'].run.p95Ms ?? null;
      return p95 === null ? [] : [[type, p95] as const];
    }),
  );
}
