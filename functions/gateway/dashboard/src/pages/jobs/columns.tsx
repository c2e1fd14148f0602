import type { ReactNode } from 'react';
import { Link } from '../../app/Link';
import { paths } from '../../app/paths';
import { Duration } from '../../ui/Measure';
import { RelativeTime } from '../../ui/RelativeTime';
import { StatusBadge } from '../../ui/StatusBadge';
import type { Job } from './rows';

export interface Column {
  id: string;
  header: string;
  cell: (job: Job) => ReactNode;
}

const none = <span className="muted">–</span>;

/** columns are all columns that a row can have, in their order. */
export const columns: readonly Column[] = [
  {
    id: 'job',
    header: 'Job',
    cell: (job) => (
      <Link href={paths.job(job.jobId)} className="job-link">
        <bdi title={job.jobType}>{job.jobType}</bdi> <span className="mono muted">{job.jobId.slice(-12)}</span>
      </Link>
    ),
  },
  { id: 'status', header: 'State', cell: (job) => <State job={job} /> },
  { id: 'problem', header: 'Waits for, or failed by', cell: (job) => <Problem job={job} /> },
  { id: 'ownerId', header: 'Owner', cell: (job) => job.ownerId ?? none },
  { id: 'queue', header: 'Queue', cell: (job) => <Link href={paths.queue(job.queue)}>{job.queue}</Link> },
  { id: 'createdAt', header: 'Accepted', cell: (job) => <RelativeTime at={job.createdAt} /> },
  { id: 'took', header: 'Ran', cell: (job) => <Duration ms={took(job)} /> },
  { id: 'attempt', header: 'Attempt', cell: (job) => job.attempt || none },
  {
    id: 'tags',
    header: 'Tags',
    cell: (job) =>
      job.tags.length === 0
        ? none
        : job.tags.map((tag) => (
            <Link key={tag} href={paths.jobs({ tag })} className="tag">
              <bdi>{tag}</bdi>
            </Link>
          )),
  },
  { id: 'priority', header: 'Priority', cell: (job) => job.priority },
  { id: 'nextRunAt', header: 'Next run', cell: (job) => <RelativeTime at={job.nextRunAt} /> },
  { id: 'updatedAt', header: 'Changed', cell: (job) => <RelativeTime at={job.updatedAt} /> },
  { id: 'orderingKey', header: 'Ordering key', cell: (job) => job.orderingKey ?? none },
  { id: 'traceId', header: 'Trace id', cell: (job) => <span className="mono">{job.traceId}</span> },
];

export const WIDE = ['job', 'status', 'problem', 'queue', 'createdAt', 'took', 'attempt', 'tags'];
export const NARROW = ['job', 'status', 'problem', 'createdAt'];

function State({ job }: { job: Job }) {
  return (
    <span className="row">
      <StatusBadge status={job.status} />
      {job.progress && job.status === 'RUNNING' && <span className="small tabular muted">{job.progress.percent} %</span>}
      {job.cancelRequestedAt && <span className="small muted">cancelling</span>}
    </span>
  );
}

function Problem({ job }: { job: Job }) {
  const blocker = job.blockedBy[0];
  if (blocker) {
    return (
      <span className="ellipsis">
        {blocker.kind} <span className="muted">{blocker.id}</span>
        {job.blockedBy.length > 1 && ` and ${job.blockedBy.length - 1} more`}
      </span>
    );
  }
  if (job.lastError && job.status !== 'COMPLETED') {
    return (
      <span className="ellipsis" title={job.lastError.message}>
        <code>{job.lastError.errorCode}</code> <bdi className="muted">{job.lastError.message}</bdi>
      </span>
    );
  }
  return none;
}

function took(job: Job): number | null {
  return job.startedAt && job.finishedAt ? Date.parse(job.finishedAt) - Date.parse(job.startedAt) : null;
}
