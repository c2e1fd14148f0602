import { useQuery } from '@tanstack/react-query';
import { workersQuery } from '../../api/queries';
import type { Schemas } from '../../api/client';
import { Link } from '../../app/Link';
import { paths } from '../../app/paths';
import type { Mark } from '../../charts/FlowChart';
import { plural } from '../../format/number';
import { usePolling } from '../../live/live';
import { Badge } from '../../ui/Badge';
import { Card } from '../../ui/Card';
import { Fold } from '../../ui/Fold';
import { Count } from '../../ui/Measure';
import { Table } from '../../ui/Table';
import type { Subject } from './queries';
import { deploys, servingOf } from './serving';

export interface Serving {
  workers: readonly Schemas['Worker'][] | undefined; // undefined: not yet read
  without: readonly Schemas['TypeWithoutWorker'][]; // the jobs of the subject that no worker runs
  marks: readonly Mark[]; // when the versions of the workers began
}

/** useServing finds the live workers that serve a queue or run a job type. */
export function useServing(subject: Subject): Serving {
  const { data } = useQuery({ ...workersQuery, refetchInterval: usePolling(5000) });
  const workers = data && servingOf(data.workers, subject);
  const without = data?.withoutWorker.filter((of) => (subject.kind === 'queue' ? of.queue : of.jobType) === subject.name) ?? [];
  return { workers, without, marks: deploys(workers ?? []) };
}

const AT_FIRST = 10;

/** Workers lists the workers that serve the subject, and its jobs that none runs. */
export function Workers({ subject, serving: { workers, without } }: { subject: Subject; serving: Serving }) {
  if (workers === undefined) {
    return null;
  }
  const rest = workers.slice(AT_FIRST);
  return (
    <Card title={plural(workers.length, 'live worker')} aside={<Link href={paths.workers()}>What they run</Link>} flush={workers.length > 0}>
      {workers.length === 0 && (
        <p className="health-down">No live worker {subject.kind === 'queue' ? 'serves this queue' : 'runs this job type'}: its jobs wait until one does.</p>
      )}
      {workers.length > 0 && <List workers={workers.slice(0, AT_FIRST)} />}
      {rest.length > 0 && <Fold title={plural(rest.length, 'more worker')}>{() => <List workers={rest} />}</Fold>}
      {workers.length > 0 && without.length > 0 && (
        <p className="load-more small">
          <span>
            None of them runs{' '}
            {without.map(({ queue, jobType, jobs }, i) => (
              <span key={`${queue} ${jobType}`}>
                {i > 0 && ', '}
                <Link href={subject.kind === 'queue' ? paths.type(jobType) : paths.queue(queue)}>
                  {subject.kind === 'queue' ? jobType : `it in ${queue}`}
                </Link>{' '}
                ({plural(jobs, 'job')})
              </span>
            ))}
            .
          </span>
        </p>
      )}
    </Card>
  );
}

function List({ workers }: { workers: readonly Schemas['Worker'][] }) {
  return (
    <Table caption="Live workers">
      <thead>
        <tr>
          <th scope="col">Worker</th>
          <th scope="col">Version</th>
          <th scope="col" className="number">
            Busy
          </th>
        </tr>
      </thead>
      <tbody>
        {workers.map(({ workerId, version, busy, slots, stopping, draining }) => (
          <tr key={workerId}>
            <th scope="row" className="mono reason">
              {workerId} {(stopping || draining) && <Badge tone="warn">{stopping ? 'stopping' : 'draining'}</Badge>}
            </th>
            <td>{version}</td>
            <td className="number">
              {busy === null ? <Count n={slots} /> : `${busy} of ${slots}`}
            </td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}
