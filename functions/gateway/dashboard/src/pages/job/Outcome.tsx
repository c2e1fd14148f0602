import { paths } from '../../app/paths';
import { Link } from '../../app/Link';
import { RelativeTime } from '../../ui/RelativeTime';
import type { Job } from './queries';

/** Outcome explains the job's state in words: what it waits for, its progress, or its failure. */
export function Outcome({ job }: { job: Job }) {
  if (job.cancelRequestedAt) {
    return (
      <p className="banner banner-warn">
        A cancel was asked for <RelativeTime at={job.cancelRequestedAt} />. The worker has not answered yet.
      </p>
    );
  }
  if (job.progress && !job.finishedAt) {
    return (
      <div className="banner">
        <p>
          {job.progress.percent} % {job.progress.message}
        </p>
        <progress className="meter" value={job.progress.percent} max={100} aria-label="Progress of the job" />
      </div>
    );
  }
  switch (job.status) {
    case 'FAILED':
    case 'RETRYING':
      return <Failure job={job} />;
    case 'SCHEDULED':
    case 'PENDING':
      return <Waits job={job} />;
    case 'WAITING':
      if (job.forEach) {
        return (
          <p className="banner">
            It waits for the <Link href={paths.jobs({ fanOutId: job.jobId })}>jobs of its elements</Link>.
          </p>
        );
      }
      return (
        <p className="banner">
          An outside system works on it. Its callback has to come <RelativeTime at={job.callbackDeadlineAt} />.
        </p>
      );
    case 'QUEUED':
      return <p className="banner">It is on its way to a worker, or a worker runs it and has not reported yet.</p>;
    default:
      return null;
  }
}

function Failure({ job }: { job: Job }) {
  return (
    <div className="banner banner-bad">
      {job.lastError && (
        <p>
          <Link href={paths.jobs({ errorCode: job.lastError.errorCode })} title="Jobs that failed in the same way">
            <code>{job.lastError.errorCode}</code>
          </Link>{' '}
          {job.lastError.message}
        </p>
      )}
      <p className="small">
        {job.status === 'RETRYING' ? (
          <>
            It runs again <RelativeTime at={job.nextRunAt} />, for retry {job.retryCount} of {job.maxRetryCount}.
          </>
        ) : (
          <>It is a dead letter: {job.retryCount === 0 ? 'it was not retried' : `it failed again in ${job.retryCount === 1 ? 'its only retry' : `all of its ${job.retryCount} retries`}`}. Retry runs this job again; Run again submits a new one like it.</>
        )}
      </p>
    </div>
  );
}

const KINDS = {
  dependency: 'the job',
  order: 'the jobs before it of the ordering key',
  singleton: 'the jobs before it of the singleton key',
  pause: 'the pause of',
  limit: 'the limit of',
  worker: 'a worker that runs the job type',
};

function Waits({ job }: { job: Job }) {
  if (job.blockedBy.length === 0) {
    return (
      <p className="banner">
        {job.nextRunAt && Date.parse(job.nextRunAt) > Date.now() ? (
          <>
            It is due <RelativeTime at={job.nextRunAt} />.
          </>
        ) : (
          'It is due, and waits for a free worker.'
        )}
      </p>
    );
  }
  return (
    <div className="banner banner-warn">
      <p>It waits for</p>
      <ul className="error-details">
        {job.blockedBy.map((blocker) => (
          <li key={`${blocker.kind}:${blocker.id}`}>
            {KINDS[blocker.kind]}{' '}
            {blocker.kind === 'dependency' ? <Link href={paths.job(blocker.id)}>{blocker.id}</Link> : <code>{blocker.id}</code>}
          </li>
        ))}
      </ul>
    </div>
  );
}
