import { createColumnHelper } from '@tanstack/react-table';
import { Link } from '../../app/Link';
import { paths } from '../../app/paths';
import { Duration } from '../../ui/Measure';
import { RelativeTime } from '../../ui/RelativeTime';
import { StatusBadge } from '../../ui/StatusBadge';
import type { Job } from './rows';

const column = createColumnHelper<Job>();

const none = <span className="muted">–</span>;

/** columns are all columns that a row can have, in their order. */
export const columns = [
  column.display({
    id: 'job',
    header: 'Job',
    cell: ({ row: { original: job } }) => (
      <Link href={paths.job(job.jobId)} className="job-link">
        <bdi title={job.jobType}>{job.jobType}</bdi> <span className="mono muted">{job.jobId.slice(-12)}</span>
      </Link>
    ),
  }),
  column.display({ id: 'status', header: 'State', cell: ({ row }) => <State job={row.original} /> }),
  column.display({
    id: 'problem',
    header: 'Waits for, or failed by',
    cell: ({ row }) => <Problem job={row.original} />,
  }),
  column.accessor('queue', { id: 'queue', header: 'Queue' }),
  column.accessor('createdAt', { id: 'createdAt', header: 'Accepted', cell: ({ getValue }) => <RelativeTime at={getValue()} /> }),
  column.display({ id: 'took', header: 'Ran', cell: ({ row }) => <Duration ms={took(row.original)} /> }),
  column.display({ id: 'attempt', header: 'Attempt', cell: ({ row: { original: job } }) => job.attempt || none }),
  column.display({
    id: 'tags',
    header: 'Tags',
    cell: ({ row: { original: job } }) =>
      job.tags.length === 0
        ? none
        : job.tags.map((tag) => (
            <Link key={tag} href={paths.jobs({ tag })} className="tag">
              <bdi>{tag}</bdi>
            </Link>
          )),
  }),
  column.accessor('ownerId', { id: 'ownerId', header: 'Owner', cell: ({ getValue }) => getValue() ?? none }),
  column.accessor('priority', { id: 'priority', header: 'Priority' }),
  column.accessor('nextRunAt', { id: 'nextRunAt', header: 'Next run', cell: ({ getValue }) => <RelativeTime at={getValue()} /> }),
  column.accessor('updatedAt', { id: 'updatedAt', header: 'Changed', cell: ({ getValue }) => <RelativeTime at={getValue()} /> }),
  column.accessor('orderingKey', { id: 'orderingKey', header: 'Ordering key', cell: ({ getValue }) => getValue() ?? none }),
  column.accessor('traceId', { id: 'traceId', header: 'Trace id', cell: ({ getValue }) => <span className="mono">{getValue()}</span> }),
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
