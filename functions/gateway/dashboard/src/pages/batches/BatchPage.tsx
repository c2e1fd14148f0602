import { useQuery } from '@tanstack/react-query';
import { Navigate, useParams } from '@tanstack/react-router';
import { useState } from 'react';
import { useMay } from '../../api/me';
import { Link } from '../../app/Link';
import { PageHeader } from '../../app/PageHeader';
import { paths } from '../../app/paths';
import { usePolling } from '../../live/live';
import { Button } from '../../ui/Button';
import { Dialog } from '../../ui/Dialog';
import { ErrorBox } from '../../ui/ErrorBox';
import { Skeleton } from '../../ui/Skeleton';
import { About, FollowUps, Jobs, State } from './parts';
import { type Batch, batchQuery, hasEnded, nameOf, useCancel, useClose, useRetry } from './queries';

export default function BatchPage() {
  const { batchId = '' } = useParams({ strict: false }) as { batchId?: string };
  const polling = usePolling(2000);
  const found = useQuery({
    ...batchQuery(batchId),
    refetchInterval: (query) => (query.state.data && hasEnded(query.state.data) ? false : polling),
  });
  const batch = found.data;
  if (batch?.isFlow) {
    return <Navigate to={paths.flow(batch.batchId)} replace />;
  }
  const lead = (
    <span className="row-wrap">
      {batch && <State of={batch} />} <Link href={paths.batches()}>All batches</Link>
    </span>
  );
  return (
    <div className="stack">
      <PageHeader title={batch ? nameOf(batch) : 'Batch'} lead={lead}>
        {batch && <Actions batch={batch} />}
      </PageHeader>
      {found.isError && <ErrorBox error={found.error} onRetry={() => void found.refetch()} />}
      {found.isPending && <Skeleton lines={8} />}
      {batch && (
        <>
          <About of={{ ...batch, id: batch.batchId }} />
          <Jobs of={{ ...batch, id: batch.batchId }} />
          <FollowUps of={batch} />
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
