import type { Schemas } from '../../api/client';
import { Link } from '../../app/Link';
import { paths } from '../../app/paths';
import { duration } from '../../format/time';
import { Card } from '../../ui/Card';

/** OldestCard names the job that has waited longest: the first sign of a queue that no worker serves. */
export function OldestCard({ oldest }: { oldest: Schemas['OldestWaiting'] }) {
  return (
    <Card title="Oldest waiting job">
      {oldest ? (
        <p>
          <Link href={paths.job(oldest.jobId)} className="big-figure">
            {duration(oldest.ageMs)}
          </Link>{' '}
          <span className="muted">since it was accepted</span>
        </p>
      ) : (
        <p className="muted">No job waits.</p>
      )}
    </Card>
  );
}
