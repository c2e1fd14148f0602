import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { useState } from 'react';
import { answer, api } from '../../api/client';
import { useMay } from '../../api/me';
import { Link } from '../../app/Link';
import { PageHeader } from '../../app/PageHeader';
import { paths } from '../../app/paths';
import { count } from '../../format/number';
import { usePolling } from '../../live/live';
import { Button } from '../../ui/Button';
import { Card } from '../../ui/Card';
import { Code } from '../../ui/Code';
import { Dialog } from '../../ui/Dialog';
import { ErrorBox } from '../../ui/ErrorBox';
import { Fact, Facts } from '../../ui/Facts';
import { Fold } from '../../ui/Fold';
import { RelativeTime } from '../../ui/RelativeTime';
import { Skeleton } from '../../ui/Skeleton';
import { StatusBadge, STATUSES } from '../../ui/StatusBadge';
import { Table } from '../../ui/Table';
import './Batch.css';
import { Progress, State } from './parts';
import { type Batch, hasEnded, nameOf, useCancel, useClose, useRetry } from './queries';

export default function BatchPage() {
  const { batchId = '' } = useParams({ strict: false }) as { batchId?: string };
  const polling = usePolling(2000);
  const found = useQuery({
    queryKey: ['batches', batchId],
    queryFn: () => answer(api.GET('/api/batches/{batchId}', { params: { path: { batchId } } })),
    refetchInterval: (query) => (query.state.data && hasEnded(query.state.data) ? false : polling),
  });
  const batch = found.data;
  return (
    <div className="stack">
      <PageHeader title={batch ? nameOf(batch) : 'Batch'} lead={<Link href={paths.batches()}>All batches</Link>}>
        {batch && <Actions batch={batch} />}
      </PageHeader>
      {found.isError && <ErrorBox error={found.error} onRetry={() => void found.refetch()} />}
      {found.isPending && <Skeleton lines={8} />}
      {batch && (
        <>
          <About batch={batch} />
          <Jobs batch={batch} />
          <FollowUps batch={batch} />
        </>
      )}
    </div>
  );
}

function Actions({ batch }: { batch: Batch }) {
  const may = useMay();
  const [asking, setAsking] = useState(false);
  const close = useClose();
  const cancel = useCancel(() => setAsking(false));
  const retry = useRetry();
  const again = (batch.counts?.FAILED ?? 0) + (batch.counts?.CANCELLED ?? 0) > 0;
  return (
    <>
      {may('submit') && batch.status === 'OPEN' && (
        <Button icon="check" busy={close.isPending} onClick={() => close.mutate(batch)}>
          Close
        </Button>
      )}
      {may('operate') && hasEnded(batch) && again && (
        <Button icon="retry" busy={retry.isPending} onClick={() => retry.mutate(batch)}>
          Retry
        </Button>
      )}
      {may('operate') && !hasEnded(batch) && (
        <Button icon="cancel" variant="danger" onClick={() => setAsking(true)}>
          Cancel
        </Button>
      )}
      {asking && (
        <Dialog
          title={`Cancel all jobs of ${nameOf(batch)}?`}
          onClose={() => setAsking(false)}
          actions={
            <>
              <Button onClick={() => setAsking(false)}>Keep them</Button>
              <Button variant="danger" busy={cancel.isPending} onClick={() => cancel.mutate(batch)}>
                Cancel the jobs
              </Button>
            </>
          }
        >
          <p>Jobs that wait never start. Those that run are asked to stop. Jobs that have ended stay as they are.</p>
        </Dialog>
      )}
    </>
  );
}

function About({ batch }: { batch: Batch }) {
  return (
    <Card title="Progress" aside={<State batch={batch} />}>
      <div className="stack">
        <div>
          <Progress batch={batch} />
        </div>
        <Facts>
          <Fact name="Id">
            <span className="mono">{batch.batchId}</span>
          </Fact>
          {batch.ownerId !== null && <Fact name="Owner">{batch.ownerId}</Fact>}
          <Fact name="Created">
            <RelativeTime at={batch.createdAt} />
          </Fact>
          {batch.closedAt !== null && (
            <Fact name="Closed">
              <RelativeTime at={batch.closedAt} />
            </Fact>
          )}
          {batch.expiresAt !== null && (
            <Fact name="Expires">
              <RelativeTime at={batch.expiresAt} />
            </Fact>
          )}
          {batch.finishedAt !== null && (
            <Fact name="Ended">
              <RelativeTime at={batch.finishedAt} />
            </Fact>
          )}
        </Facts>
      </div>
    </Card>
  );
}

/** Jobs counts the jobs by state; each count leads to the list of these jobs. */
function Jobs({ batch: { batchId, counts, total } }: { batch: Batch }) {
  const all = (
    <Link href={paths.jobs({ batchId })} className="small">
      All jobs
    </Link>
  );
  const some = STATUSES.filter((status) => (counts?.[status] ?? 0) > 0);
  return (
    <Card title="Jobs" aside={all} flush={some.length > 0}>
      {some.length === 0 && <p className="muted">{total === 0 ? 'No job has joined this batch.' : 'The jobs are not counted.'}</p>}
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

/** FollowUps shows the job that has followed the batch, and the requests of those that may. */
function FollowUps({ batch: { followUpJobId, followUpError, onComplete, onFailure, sealed } }: { batch: Batch }) {
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
          {() => <Code label={`The request: ${title.toLowerCase()}`} text={JSON.stringify(request, null, 2)} />}
        </Fold>
      ))}
    </Card>
  );
}
