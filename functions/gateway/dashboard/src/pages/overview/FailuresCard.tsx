import { useQuery } from '@tanstack/react-query';
import { Link } from '../../app/Link';
import { paths } from '../../app/paths';
import { usePolling } from '../../live/live';
import { Badge } from '../../ui/Badge';
import { Card } from '../../ui/Card';
import { Count } from '../../ui/Measure';
import { Sparkline } from '../../ui/Sparkline';
import { readDeadFilters } from '../dead/filters';
import { codeFilterOf, historyOf, keyOf, lastDay } from '../dead/groups';
import { deadGroupsQuery } from '../dead/queries';

const SHOWN = 6;

/** FailuresCard names the job types and error codes that failed most in the last day, of one job type or of all. */
export function FailuresCard({ type = '' }: { type?: string }) {
  const found = useQuery({ ...deadGroupsQuery(readDeadFilters({ type })), refetchInterval: usePolling(10_000) });
  if (!found.data) {
    return null;
  }
  const groups = found.data.groups.filter((group) => lastDay(group) > 0).toSorted((a, b) => lastDay(b) - lastDay(a));
  return (
    <Card title="What fails most" aside={<Link href={paths.dead(type ? { type } : {})}>All dead letters</Link>}>
      {groups.length === 0 ? (
        <p className="muted">
          No job failed for good in the last 24 hours. A job whose last attempt fails is counted here by its type and error code.
        </p>
      ) : (
        <ul className="fails">
          {groups.slice(0, SHOWN).map((group) => (
            <li key={keyOf(group)}>
              <Link href={paths.dead({ type: group.jobType, ...codeFilterOf(group.errorCode) })} className="fails-name">
                {!type && <strong>{group.jobType}</strong>} <code>{group.errorCode ?? 'no error code'}</code>
              </Link>
              {group.new && <Badge tone="warn">new</Badge>}
              <span className="fails-hours">
                <Sparkline values={group.hours} label={historyOf(group)} />
              </span>
              <span className="fails-count" title="Failures in the last 24 hours">
                <Count n={lastDay(group)} />
              </span>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}
