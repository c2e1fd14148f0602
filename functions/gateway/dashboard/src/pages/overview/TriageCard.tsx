import { useQuery } from '@tanstack/react-query';
import { controlsQuery, healthQuery, workersQuery } from '../../api/queries';
import type { Schemas } from '../../api/client';
import { Link } from '../../app/Link';
import { count, plural } from '../../format/number';
import { usePolling } from '../../live/live';
import { Icon } from '../../ui/Icon';
import { useNow } from '../../ui/now';
import { firingQuery } from '../alerts/queries';
import { readDeadFilters } from '../dead/filters';
import { deadGroupsQuery } from '../dead/queries';
import { useLag, useOldest } from './queries';
import { sum } from './flow';
import { needs } from './triage';

/** TriageCard is the first line of the overview: what needs a person, or that nothing does. */
export function TriageCard({ stats }: { stats: Schemas['Stats'] }) {
  const now = useNow();
  const slow = usePolling(10_000);
  const groups = useQuery({ ...deadGroupsQuery(readDeadFilters({})), refetchInterval: slow });
  const workers = useQuery({ ...workersQuery, refetchInterval: usePolling(5000) });
  const controls = useQuery({ ...controlsQuery, refetchInterval: slow });
  const health = useQuery({ ...healthQuery, refetchInterval: usePolling(5000) });
  const firing = useQuery({ ...firingQuery, refetchInterval: slow });
  const lag = useLag();
  const oldest = useOldest(stats.oldestWaiting);
  if ([groups, workers, controls, health, firing, lag, oldest].some((query) => query.isLoading)) {
    return <p className="triage triage-loading muted">Looking for what needs you…</p>;
  }
  const found = needs(
    {
      stats, groups: groups.data?.groups, workers: workers.data, controls: controls.data?.controls, topics: lag.data?.topics ?? undefined,
      health: health.data, oldest: oldest.data, firing: firing.data?.alerts,
    },
    now,
  );
  const unknown = [groups, workers, controls, firing].some((query) => query.isError && !query.data);
  if (found.length === 0) {
    const { completed, failed } = sum(stats.throughput.minutes);
    return (
      <p className="triage triage-calm">
        <Icon name="check" />
        <span>
          <strong>{unknown ? 'Nothing that could be looked at needs you.' : 'Nothing needs you.'}</strong>{' '}
          <span className="muted">
            In the last hour {count(completed)} completed and {count(failed)} failed.
          </span>
        </span>
      </p>
    );
  }
  return (
    <section className="triage" aria-labelledby="triage-title">
      <h2 id="triage-title">{plural(found.length, 'thing needs', 'things need')} you</h2>
      <ul>
        {found.map(({ subject, text, href }) => (
          <li key={`${subject} ${text.replace(/[\d,]+/g, '')}`}>
            <Link href={href}>
              <strong>{subject}</strong> {text}
            </Link>
          </li>
        ))}
      </ul>
    </section>
  );
}
