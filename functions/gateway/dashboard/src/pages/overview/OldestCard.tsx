import type { Schemas } from '../../api/client';
import { Link } from '../../app/Link';
import { paths } from '../../app/paths';
import { duration } from '../../format/time';
import { Card } from '../../ui/Card';
import { BlockedBy } from './BlockedBy';
import { useOldest } from './queries';

/** OldestCard names the job that has waited longest, and why: the first sign of a queue that no worker serves. */
export function OldestCard({ oldest }: { oldest: Schemas['OldestWaiting'] }) {
  const job = useOldest(oldest).data;
  return (
    <Card title="Oldest waiting job">
      {oldest ? (
        <>
          <p>
            <Link href={paths.job(oldest.jobId)} className="big-figure">
              {duration(oldest.ageMs)}
            </Link>{' '}
            <span className="muted">since it was accepted</span>
          </p>
          {job && (
            <p>
              <Link href={paths.job(oldest.jobId)}>{job.jobType}</Link> in <Link href={paths.queue(job.queue)}>{job.queue}</Link>
              {job.ownerId !== null && ` of ${job.ownerId}`} <BlockedBy job={job} />
            </p>
          )}
        </>
      ) : (
        <p className="muted">No job waits.</p>
      )}
    </Card>
  );
}
