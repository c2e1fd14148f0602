import { useQuery } from '@tanstack/react-query';
import { answer, api, type Schemas } from '../../api/client';
import { Link } from '../../app/Link';
import { PageHeader } from '../../app/PageHeader';
import { paths } from '../../app/paths';
import { count, perSecond, plural } from '../../format/number';
import { usePolling } from '../../live/live';
import { Badge } from '../../ui/Badge';
import { Bar } from '../../ui/Bar';
import { Card } from '../../ui/Card';
import { EmptyState } from '../../ui/EmptyState';
import { ErrorBox } from '../../ui/ErrorBox';
import { Fact, Facts } from '../../ui/Facts';
import { Fold } from '../../ui/Fold';
import { Duration } from '../../ui/Measure';
import { useNow } from '../../ui/now';
import { RelativeTime } from '../../ui/RelativeTime';
import { Skeleton } from '../../ui/Skeleton';
import { Table } from '../../ui/Table';
import { QueuesCard } from './QueuesCard';
import { summary } from './summary';
import { WithoutWorkerCard } from './WithoutWorkerCard';

type Worker = Schemas['Worker'];
type Attempt = Schemas['WorkerAttempt'];

const AT_FIRST = 20; // attempts of a worker that are shown at first

export default function WorkersPage() {
  const polling = usePolling(3000);
  const list = useQuery({ queryKey: ['workers'], queryFn: () => answer(api.GET('/api/workers')), refetchInterval: polling });
  const workers = list.data?.workers ?? [];
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
        <WorkerCard key={worker.workerId} worker={worker} />
      ))}
      <QueuesCard />
    </div>
  );
}

function WorkerCard({ worker }: { worker: Worker }) {
  return (
    <Card title={<span className="mono">{worker.workerId}</span>} aside={<State worker={worker} />}>
      <div className="stack">
        <Facts>
          <Fact name="Slots">
            {worker.busy === null ? (
              count(worker.slots)
            ) : (
              <>
                {count(worker.busy)} of {count(worker.slots)} busy
                <Bar label={`Busy slots of ${worker.workerId}`} value={worker.busy} max={worker.slots} />
              </>
            )}
          </Fact>
          {worker.rate !== null && <Fact name="Could finish">{perSecond(worker.rate)}</Fact>}
          <Fact name="Last heartbeat">
            <RelativeTime at={worker.seenAt} />
          </Fact>
          <Fact name="Version">{worker.version}</Fact>
          <Fact name="Queues">{worker.queues.map((queue) => `${queue} (${plural(worker.partitions[queue]?.length ?? 0, 'partition')})`).join(', ')}</Fact>
        </Facts>
        <Attempts worker={worker} />
        <Fold title="Job types" note={count(worker.jobTypes.length)}>
          {() => <p>{worker.jobTypes.join(', ')}</p>}
        </Fold>
      </div>
    </Card>
  );
}

function State({ worker }: { worker: Worker }) {
  if (!worker.live) {
    return <Badge tone="danger">no heartbeat for over 10 s</Badge>;
  }
  if (worker.draining && !worker.stopping) {
    return <Badge tone="warn">{worker.drained ? 'drained: it runs nothing' : 'draining: it finishes what it has'}</Badge>;
  }
  return worker.stopping ? <Badge tone="warn">stopping: it finishes what it has</Badge> : <Badge tone="good">live</Badge>;
}

function Attempts({ worker }: { worker: Worker }) {
  const longest = worker.attempts.toSorted((a, b) => (a.startedAt ?? '9').localeCompare(b.startedAt ?? '9'));
  if (longest.length === 0) {
    return <p className="muted">It runs no job at this moment that you may see.</p>;
  }
  const rest = longest.slice(AT_FIRST);
  return (
    <>
      <AttemptTable caption={`What ${worker.workerId} runs`} attempts={longest.slice(0, AT_FIRST)} />
      {rest.length > 0 && (
        <Fold title={`${plural(rest.length, 'more attempt')}`}>
          {() => <AttemptTable caption={`What else ${worker.workerId} runs`} attempts={rest} />}
        </Fold>
      )}
    </>
  );
}

function AttemptTable({ caption, attempts }: { caption: string; attempts: Attempt[] }) {
  const now = useNow();
  return (
    <Table caption={caption}>
      <thead>
        <tr>
          <th scope="col">Job</th>
          <th scope="col" className="number">
            Attempt
          </th>
          <th scope="col" className="number">
            Runs for
          </th>
          <th scope="col">Progress</th>
        </tr>
      </thead>
      <tbody>
        {attempts.map((attempt) => (
          <tr key={`${attempt.jobId}.${attempt.attempt}`}>
            <td>
              <Link href={paths.job(attempt.jobId)} className="mono">
                {attempt.jobId}
              </Link>
            </td>
            <td className="number">{attempt.attempt}</td>
            <td className="number">
              {attempt.startedAt === null ? (
                <span className="muted">waits for a slot</span>
              ) : (
                <Duration ms={Math.max(0, now.getTime() - Date.parse(attempt.startedAt))} />
              )}
            </td>
            <td>
              <Progress attempt={attempt} />
            </td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}

function Progress({ attempt: { jobId, progress } }: { attempt: Attempt }) {
  if (progress === null) {
    return <span className="muted">–</span>;
  }
  return (
    <>
      <Bar label={`Progress of ${jobId}`} value={progress.percent} max={100} />
      {progress.message}
    </>
  );
}
