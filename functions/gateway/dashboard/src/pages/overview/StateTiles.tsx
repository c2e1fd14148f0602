import type { Schemas } from '../../api/client';
import { Link } from '../../app/Link';
import { paths } from '../../app/paths';
import { compact, perSecond } from '../../format/number';
import { Count } from '../../ui/Measure';
import { RelativeTime } from '../../ui/RelativeTime';
import { MEANING, STATUSES, type Status } from '../../ui/StatusBadge';
import { sum } from './flow';

interface Props {
  stats: Schemas['Stats'];
  filter?: Record<string, string>; // of the jobs that are counted
}

/** StateTiles shows how many jobs are in each state, and where the numbers go; each tile links to the jobs. A state without jobs is quiet. */
export function StateTiles({ stats, filter = {} }: Props) {
  const { jobs, at, asOf } = stats;
  return (
    <section aria-label="Jobs by state">
      <ul className="tiles">
        {STATUSES.map((status) => {
          const n = jobs[status];
          const note = trend(status, stats);
          return (
            <li key={status}>
              <Link
                href={paths.jobs({ ...filter, status })}
                className={`tile status-${status.toLowerCase()} ${n === 0 ? 'tile-quiet' : ''}`}
                title={MEANING[status]}
              >
                <span className="tile-name">{status}</span>
                <span className="tile-count">
                  <Count n={n} />
                </span>
                {note && <span className="tile-trend">{note}</span>}
              </Link>
            </li>
          );
        })}
      </ul>
      {/* A few thousand jobs that have not ended are counted for each response, more of them only now and then. */}
      {asOf && asOf !== at && (
        <p className="small muted tiles-note">
          The jobs were counted <RelativeTime at={asOf} />.
        </p>
      )}
      {!asOf && <p className="small muted tiles-note">The jobs that have not ended are being counted.</p>}
    </section>
  );
}

const STEADY = 0.05; // jobs a second

/** trend describes how a number changes: what ended in the last hour, and whether more jobs come in than end. */
export function trend(status: Status, { jobs, throughput }: Pick<Schemas['Stats'], 'jobs' | 'throughput'>): string {
  const hour = sum(throughput.minutes);
  switch (status) {
    case 'COMPLETED':
      return hour.completed > 0 ? `+${compact(hour.completed)} in an hour` : '';
    case 'FAILED':
      return hour.failed > 0 ? `+${compact(hour.failed)} in an hour` : '';
    case 'CANCELLED':
      return hour.cancelled > 0 ? `+${compact(hour.cancelled)} in an hour` : '';
    case 'PENDING': {
      const { accepted, completed, failed, cancelled } = throughput.perSecond['5m'];
      const net = accepted - completed - failed - cancelled;
      if (jobs.PENDING === 0 || Math.abs(net) < STEADY) {
        return '';
      }
      return net > 0 ? `▲ ${perSecond(net)} more come than end` : `▼ ${perSecond(-net)} more end than come`;
    }
    default:
      return '';
  }
}
