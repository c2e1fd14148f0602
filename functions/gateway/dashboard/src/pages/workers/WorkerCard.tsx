import type { Schemas } from '../../api/client';
import { Link } from '../../app/Link';
import { paths } from '../../app/paths';
import { count, perSecond, plural } from '../../format/number';
import { duration } from '../../format/time';
import { Badge } from '../../ui/Badge';
import { Bar } from '../../ui/Bar';
import { Card } from '../../ui/Card';
import { Fact, Facts } from '../../ui/Facts';
import { Fold } from '../../ui/Fold';
import { Duration } from '../../ui/Measure';
import { useNow } from '../../ui/now';
import { RelativeTime } from '../../ui/RelativeTime';
import { Table } from '../../ui/Table';
import { busyOf } from './summary';

export type Worker = Schemas['Worker'];
type Attempt = Schemas['WorkerAttempt'];

const AT_FIRST = 20; // attempts of a worker that are shown at first

interface Props {
  worker: Worker;
  usual: ReadonlyMap<string, number>; // how long 95 % of the attempts of a job type ran, in ms
}

/** WorkerCard shows how busy a worker is, and which jobs it runs, the longest first. */
export function WorkerCard({ worker, usual }: Props) {
  const busy = busyOf(worker);
  const unlisted = (busy ?? 0) - worker.attempts.length;
  return (
    <Card title={<bdi className="mono">{worker.workerId}</bdi>} aside={<State worker={worker} />}>
      <div className="stack">
        <Facts>
          <Fact name="Slots">
            {busy === null ? (
              count(worker.slots)
            ) : (
              <>
                {count(busy)} of {count(worker.slots)} busy
                <Bar label={`Busy slots of ${worker.workerId}`} value={busy} max={worker.slots} />
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
        <Attempts worker={worker} usual={usual} />
        {unlisted > 0 && worker.attempts.length > 0 && <p className="small muted">and {plural(unlisted, 'attempt')} that started just now</p>}
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

function Attempts({ worker, usual }: Props) {
  const longest = worker.attempts.toSorted((a, b) => (a.startedAt ?? '9').localeCompare(b.startedAt ?? '9'));
  if (longest.length === 0) {
    return <p className="muted">{(worker.busy ?? 0) > 0 ? 'Its attempts started just now.' : 'It runs no job at this moment that you may see.'}</p>;
  }
  const rest = longest.slice(AT_FIRST);
  return (
    <>
      <AttemptTable caption={`What ${worker.workerId} runs`} attempts={longest.slice(0, AT_FIRST)} usual={usual} />
      {rest.length > 0 && (
        <Fold title={plural(rest.length, 'more attempt')}>
          {() => <AttemptTable caption={`What else ${worker.workerId} runs`} attempts={rest} usual={usual} />}
        </Fold>
      )}
    </>
  );
}

function AttemptTable({ caption, attempts, usual }: { caption: string; attempts: Attempt[]; usual: Props['usual'] }) {
  const pulled = attempts.some(({ ranBy }) => ranBy !== null);
  const owned = attempts.some(({ ownerId }) => ownerId !== null);
  return (
    <Table caption={caption} cards>
      <thead>
        <tr>
          <th scope="col">Job</th>
          {owned && <th scope="col">Owner</th>}
          <th scope="col">Tags</th>
          {pulled && <th scope="col">Pull worker</th>}
          <th scope="col">Runs for</th>
          <th scope="col">Progress</th>
        </tr>
      </thead>
      <tbody>
        {attempts.map((attempt) => (
          <tr key={`${attempt.jobId}.${attempt.attempt}`}>
            <th scope="row" className="cell-name">
              <Link href={paths.job(attempt.jobId)} title={attempt.jobId}>
                {attempt.jobType ?? <span className="mono">{attempt.jobId}</span>}
              </Link>
              {attempt.attempt > 1 && <span className="muted"> attempt {attempt.attempt}</span>}
            </th>
            {owned && (
              <td data-label="Owner" className={attempt.ownerId === null ? 'cell-empty' : 'cell-name'}>
                <bdi>{attempt.ownerId ?? '–'}</bdi>
              </td>
            )}
            <td className={attempt.tags.length === 0 ? 'cell-empty' : ''}>
              {attempt.tags.map((tag) => (
                <Link key={tag} href={paths.jobs({ tag })} className="tag">
                  <bdi>{tag}</bdi>
                </Link>
              ))}
            </td>
            {pulled && (
              <td data-label="Pull worker" className={attempt.ranBy === null ? 'cell-empty' : 'cell-name mono'}>
                <bdi>{attempt.ranBy ?? '–'}</bdi>
              </td>
            )}
            <td data-label="Runs for">
              <RunsFor attempt={attempt} usual={usual} />
            </td>
            <td className={attempt.progress === null ? 'cell-empty' : 'cell-whole'}>
              <Progress attempt={attempt} />
            </td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}

function RunsFor({ attempt: { startedAt, jobType }, usual }: { attempt: Attempt; usual: Props['usual'] }) {
  const now = useNow();
  if (startedAt === null) {
    return <span className="muted">waits for a slot</span>;
  }
  const ms = Math.max(0, now.getTime() - Date.parse(startedAt));
  const p95 = usual.get(jobType ?? '');
  return (
    <span className="row-wrap">
      <Duration ms={ms} />
      {p95 !== undefined && ms > p95 && <Badge tone="warn">longer than p95, {duration(p95)}</Badge>}
    </span>
  );
}

function Progress({ attempt: { jobId, progress } }: { attempt: Attempt }) {
  if (progress === null) {
    return <span className="muted">–</span>;
  }
  return (
    <>
      <Bar label={`Progress of ${jobId}`} value={progress.percent} max={100} />
      <bdi>
        {progress.percent} % {progress.message}
      </bdi>
    </>
  );
}
