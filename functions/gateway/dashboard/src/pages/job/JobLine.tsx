import type { Schemas } from '../../api/client';
import { Link } from '../../app/Link';
import { paths } from '../../app/paths';
import { StatusBadge } from '../../ui/StatusBadge';

/** JobLine shows a job in a list of related jobs: its type, the end of its id, and its state. */
export function JobLine({ job: { jobId, jobType, status } }: { job: Pick<Schemas['JobSummary'], 'jobId' | 'jobType' | 'status'> }) {
  return (
    <>
      <Link href={paths.job(jobId)}>
        {jobType} <span className="mono muted">{jobId.slice(-12)}</span>
      </Link>
      <StatusBadge status={status} />
    </>
  );
}
