import { useQuery } from '@tanstack/react-query';
import { workersQuery } from '../../api/queries';
import { Link } from '../../app/Link';
import { paths } from '../../app/paths';
import { plural } from '../../format/number';
import { usePolling } from '../../live/live';
import { Card } from '../../ui/Card';
import { WithoutWorkerCard } from '../workers/WithoutWorkerCard';
import { slotsOf } from './slots';

/** UnservedCard lists the job types that no worker runs, if there are any. */
export function UnservedCard() {
  const workers = useQuery(workersQuery);
  return workers.data ? <WithoutWorkerCard types={workers.data.withoutWorker} /> : null;
}

/** WorkersCard shows how many slots there are, and how many are busy. */
export function WorkersCard() {
  const workers = useQuery({ ...workersQuery, refetchInterval: usePolling(5000) });
  if (!workers.data) {
    return null;
  }
  const { live, slots, busy, stopping } = slotsOf(workers.data.workers);
  return (
    <Card title="Workers" aside={<Link href={paths.workers()}>What they run</Link>}>
      {live === 0 ? (
        <p className="health-down">No worker lives: nothing runs. Start the function runjob, or a worker of your own.</p>
      ) : (
        <>
          <p>
            <span className="big-figure">{busy === null ? plural(slots, 'slot') : `${busy} of ${plural(slots, 'slot')}`}</span>{' '}
            <span className="muted">
              {busy === null ? 'on' : 'busy on'} {plural(live, 'worker')}
              {stopping > 0 && `, ${stopping} of them stopping`}
            </span>
          </p>
          {busy !== null && slots > 0 && <progress className="meter" value={busy} max={slots} aria-label="Busy slots" />}
        </>
      )}
    </Card>
  );
}
