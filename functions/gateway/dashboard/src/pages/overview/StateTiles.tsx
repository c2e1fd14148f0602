import type { Schemas } from '../../api/client';
import { Link } from '../../app/Link';
import { paths } from '../../app/paths';
import { Count } from '../../ui/Measure';
import { RelativeTime } from '../../ui/RelativeTime';
import { MEANING, STATUSES } from '../../ui/StatusBadge';

interface Props {
  counts: Schemas['JobCounts'];
  at: string;
  asOf: string | null;
}

/** StateTiles shows how many jobs are in each state; each tile links to them. */
export function StateTiles({ counts, at, asOf }: Props) {
  return (
    <section aria-label="Jobs by state">
      <ul className="tiles">
        {STATUSES.map((status) => (
          <li key={status}>
            <Link href={paths.jobs({ status })} className={`tile status-${status.toLowerCase()}`} title={MEANING[status]}>
              <span className="tile-name">{status}</span>
              <span className="tile-count">
                <Count n={counts[status] ?? 0} />
              </span>
            </Link>
          </li>
        ))}
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
