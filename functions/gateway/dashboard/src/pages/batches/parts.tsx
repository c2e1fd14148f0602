import { stringify } from '../../api/json';
import { Link } from '../../app/Link';
import { paths } from '../../app/paths';
import { count } from '../../format/number';
import { Bar } from '../../ui/Bar';
import { Card } from '../../ui/Card';
import { Code } from '../../ui/Code';
import { CopyButton } from '../../ui/CopyButton';
import { Fact, Facts } from '../../ui/Facts';
import { Fold } from '../../ui/Fold';
import { RelativeTime } from '../../ui/RelativeTime';
import { type Status, StatusBadge, STATUSES } from '../../ui/StatusBadge';
import { Table } from '../../ui/Table';
import './Batch.css';
import type { Batch, Flow } from './queries';

/** Group has what batches and flows share. */
export type Group = Pick<Batch, 'name' | 'ownerId' | 'status' | 'percent' | 'total' | 'counts' | 'createdAt' | 'expiresAt' | 'finishedAt'>;

const TONES: Record<Group['status'], Status> = {
  OPEN: 'PENDING',
  RUNNING: 'RUNNING',
  COMPLETED: 'COMPLETED',
  FAILED: 'FAILED',
  CANCELLED: 'CANCELLED',
  EXPIRED: 'CANCELLED',
};

const MEANINGS: Record<Group['status'], string> = {
  OPEN: 'jobs can still join it',
  RUNNING: 'some of its jobs have not ended',
  COMPLETED: 'all of its jobs ended well',
  FAILED: 'it ended, and some of its jobs failed',
  CANCELLED: 'it ended, and was cancelled',
  EXPIRED: 'its jobs were cancelled at the time when it expired',
};

/** State shows the state of a batch or a flow in the colours of the states of jobs. */
export function State({ of: { status } }: { of: Pick<Group, 'status'> }) {
  return <StatusBadge status={TONES[status]} label={status} meaning={MEANINGS[status]} />;
}

/** Progress shows how many of the jobs have ended, and how, as far as that is known. */
export function Progress({ of: batch }: { of: Group }) {
  const { name, status, total, percent, counts } = batch;
  if (total === null || percent === null) {
    return <span className="small muted">{status === 'OPEN' ? 'counted when it is closed' : 'too many jobs to count them'}</span>;
  }
  if (total === 0) {
    return <span className="small muted">no jobs</span>;
  }
  const bad = (['FAILED', 'CANCELLED'] as const).filter((each) => (counts?.[each] ?? 0) > 0);
  return (
    <>
      <Bar label={name === null ? 'Progress' : `Progress of ${name}`} value={percent} max={100} tone={TONES[status]} />
      <span className="small muted tabular">
        {percent} % of {count(total)} {total === 1 ? 'job' : 'jobs'}
        {bad.map((each) => `, ${count(counts?.[each] ?? 0)} ${each.toLowerCase()}`)}
      </span>
    </>
  );
}

export function About({ of }: { of: Group & { id: string; closedAt?: string | null } }) {
  return (
    <Card title="Progress">
      <div className="stack">
        <div>
          <Progress of={of} />
        </div>
        <Facts>
          <Fact name="Id">
            <span className="mono">{of.id}</span> <CopyButton text={of.id} label="Copy the id" />
          </Fact>
          {of.ownerId !== null && <Fact name="Owner">{of.ownerId}</Fact>}
          <Fact name="Created">
            <RelativeTime at={of.createdAt} />
          </Fact>
          {of.closedAt && (
            <Fact name="Closed">
              <RelativeTime at={of.closedAt} />
            </Fact>
          )}
          {of.expiresAt !== null && (
            <Fact name="Expires">
              <RelativeTime at={of.expiresAt} />
            </Fact>
          )}
          {of.finishedAt !== null && (
            <Fact name="Ended">
              <RelativeTime at={of.finishedAt} />
            </Fact>
          )}
        </Facts>
      </div>
    </Card>
  );
}

/** Jobs counts the jobs by state; each count leads to the list of these jobs. */
export function Jobs({ of: { id: batchId, counts, total } }: { of: Group & { id: string } }) {
  const all = (
    <Link href={paths.jobs({ batchId })} className="small">
      All jobs
    </Link>
  );
  const some = STATUSES.filter((status) => (counts?.[status] ?? 0) > 0);
  return (
    <Card title="Jobs" aside={all} flush={some.length > 0}>
      {some.length === 0 && <p className="muted">{total === 0 ? 'It has no job.' : 'The jobs are not counted.'}</p>}
      {some.length > 0 && (
        <Table caption="Jobs by state">
          <thead>
            <tr>
              <th scope="col">State</th>
              <th scope="col" className="number">
                Jobs
              </th>
            </tr>
          </thead>
          <tbody>
            {some.map((status) => (
              <tr key={status}>
                <td>
                  <StatusBadge status={status} />
                </td>
                <td className="number">
                  <Link href={paths.jobs({ batchId, status: [status] })}>{count(counts?.[status] ?? 0)}</Link>
                </td>
              </tr>
            ))}
          </tbody>
        </Table>
      )}
    </Card>
  );
}

/** FollowUps shows the job that has followed, and the requests of those that may. */
export function FollowUps({ of: { followUpJobId, followUpError, onComplete, onFailure, sealed } }: { of: Batch | Flow }) {
  const requests = [
    { title: 'If all complete', request: onComplete },
    { title: 'If some do not', request: onFailure },
  ].filter(({ request }) => request !== null);
  if (requests.length === 0 && followUpJobId === null && followUpError === null && !sealed?.length) {
    return null;
  }
  return (
    <Card title="Afterwards" flush={requests.length > 0}>
      {followUpJobId !== null && (
        <p className="batch-note">
          This job has followed: <Link href={paths.job(followUpJobId)} className="mono">{followUpJobId}</Link>
        </p>
      )}
      {followUpError !== null && <p className="batch-note field-error">No job could follow: {followUpError}</p>}
      {sealed !== undefined && sealed.length > 0 && <p className="batch-note muted">Sealed with a key that the gateway lacks: {sealed.join(', ')}.</p>}
      {requests.map(({ title, request }) => (
        <Fold key={title} title={title} note={String((request as { jobType?: unknown }).jobType ?? '')}>
          {() => <Code label={`The request: ${title.toLowerCase()}`} text={stringify(request, 2)} />}
        </Fold>
      ))}
    </Card>
  );
}
