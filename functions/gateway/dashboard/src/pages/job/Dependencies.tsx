import { useQueries, useQuery } from '@tanstack/react-query';
import { Link } from '../../app/Link';
import { paths } from '../../app/paths';
import { plural } from '../../format/number';
import { usePolling } from '../../live/live';
import { Card } from '../../ui/Card';
import { StatusBadge } from '../../ui/StatusBadge';
import { JobLine } from './JobLine';
import { followersQuery } from './neighbours';
import { hasEnded, jobQuery, type Job } from './queries';

const SHOWN = 12;

/** Dependencies draws a small graph: the dependencies of the job, the job, and the jobs that depend on it. */
export function Dependencies({ job }: { job: Job }) {
  const shown = job.after.slice(0, SHOWN);
  const polling = usePolling(5000);
  const refetchInterval = hasEnded(job) ? (false as const) : polling;
  const before = useQueries({ queries: shown.map((jobId) => ({ ...jobQuery(jobId), refetchInterval })) });
  const followers = useQuery({ ...followersQuery(job), refetchInterval });
  const after = followers.data?.jobs ?? [];
  const more = followers.data?.nextCursor != null;

  if (shown.length === 0 && after.length === 0) {
    return null;
  }
  return (
    <Card title="Dependencies" aside={after.length > 0 && <Link href={paths.jobs({ after: job.jobId })}>All jobs after this one</Link>}>
      {shown.length > 0 && (
        <ul className="dependencies" aria-label="Runs after">
          {shown.map((jobId, i) => (
            <li key={jobId}>
              {before[i]?.data ? <JobLine job={before[i].data} /> : <Unknown jobId={jobId} deleted={before[i]?.isError ?? false} />}
            </li>
          ))}
        </ul>
      )}
      {job.after.length > SHOWN && <p className="small muted">and {plural(job.after.length - SHOWN, 'more job')}</p>}
      <p className="dependencies-this">
        <strong>This job</strong> <StatusBadge status={job.status} />
      </p>
      {after.length > 0 && (
        <ul className="dependencies dependencies-after" aria-label="Run after this job">
          {after.slice(0, SHOWN).map((other) => (
            <li key={other.jobId}>
              <JobLine job={other} />
            </li>
          ))}
        </ul>
      )}
      {after.length > SHOWN && (
        <p className="small muted">
          and {more && 'more than '}
          {plural(after.length - SHOWN, 'more job')}
        </p>
      )}
      {shown.length > 0 && (
        <p className="small muted dependencies-note">
          {job.onDependencyFailure === 'run'
            ? 'This job runs when all jobs above have ended, in whatever way.'
            : 'This job runs when all jobs above are COMPLETED. It is cancelled when one of them fails or is cancelled.'}
        </p>
      )}
    </Card>
  );
}

function Unknown({ jobId, deleted }: { jobId: string; deleted: boolean }) {
  return (
    <>
      <Link href={paths.job(jobId)} className="mono">
        {jobId.slice(-12)}
      </Link>
      <span className="muted small">{deleted ? 'deleted' : '…'}</span>
    </>
  );
}
