import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { useState } from 'react';
import { answer, api } from '../../api/client';
import { useMay } from '../../api/me';
import { Link } from '../../app/Link';
import { PageHeader } from '../../app/PageHeader';
import { paths } from '../../app/paths';
import { usePolling } from '../../live/live';
import { Button } from '../../ui/Button';
import { Dialog } from '../../ui/Dialog';
import { ErrorBox } from '../../ui/ErrorBox';
import { Skeleton } from '../../ui/Skeleton';
import { About, FollowUps, Jobs, State } from '../batches/parts';
import { type Flow, hasEnded, useCancelFlow, useRetryFlow } from '../batches/queries';
import { RetryDialog } from './RetryDialog';
import { View } from './View';

export default function FlowPage() {
  const { flowId = '' } = useParams({ strict: false }) as { flowId?: string };
  const polling = usePolling(2000);
  const found = useQuery({
    queryKey: ['flows', flowId],
    queryFn: () => answer(api.GET('/api/flows/{flowId}', { params: { path: { flowId } } })),
    refetchInterval: (query) => (query.state.data && hasEnded(query.state.data) ? false : polling),
  });
  const flow = found.data;
  const [from, setFrom] = useState<string | null>(null);
  const lead = (
    <span className="row-wrap">
      {flow && <State of={flow} />} <Link href={paths.flows()}>All flows</Link>
    </span>
  );
  return (
    <div className="stack">
      <PageHeader title={flow ? (flow.name ?? flow.flowId) : 'Flow'} lead={lead}>
        {flow && <Actions flow={flow} />}
      </PageHeader>
      {found.isError && <ErrorBox error={found.error} onRetry={() => void found.refetch()} />}
      {found.isPending && <Skeleton lines={8} />}
      {flow && (
        <>
          <View flow={flow} onRetryFrom={setFrom} />
          <About of={{ ...flow, id: flow.flowId }} />
          <Jobs of={{ ...flow, id: flow.flowId }} />
          <FollowUps of={flow} />
          {from !== null && <RetryDialog flow={flow} first={from} compensated={false} onClose={() => setFrom(null)} />}
        </>
      )}
    </div>
  );
}

function Actions({ flow }: { flow: Flow }) {
  const may = useMay();
  const [asking, setAsking] = useState(false);
  const cancel = useCancelFlow(() => setAsking(false));
  const [choosing, setChoosing] = useState<'asked' | 'compensated' | null>(null);
  const retry = useRetryFlow(() => setChoosing('compensated'));
  return (
    <>
      {may('operate') && hasEnded(flow) && flow.status !== 'COMPLETED' && (
        <Button icon="retry" busy={retry.isPending} onClick={() => retry.mutate(flow)}>
          Retry
        </Button>
      )}
      {may('operate') && hasEnded(flow) && (
        <Button icon="retry" onClick={() => setChoosing('asked')}>
          Run again
        </Button>
      )}
      {choosing && <RetryDialog flow={flow} compensated={choosing === 'compensated'} onClose={() => setChoosing(null)} />}
      {may('operate') && !hasEnded(flow) && (
        <Button icon="cancel" variant="danger" onClick={() => setAsking(true)}>
          Cancel
        </Button>
      )}
      {asking && (
        <Dialog
          title={`Cancel all jobs of ${flow.name ?? 'the flow'}?`}
          onClose={() => setAsking(false)}
          actions={
            <>
              <Button onClick={() => setAsking(false)}>Keep them</Button>
              <Button variant="danger" busy={cancel.isPending} onClick={() => cancel.mutate(flow)}>
                Cancel the jobs
              </Button>
            </>
          }
        >
          <p>
            Jobs that wait never start, unless they wait for the failure or the end of another one: such a job may start before it is
            cancelled. Those that run are asked to stop.
          </p>
        </Dialog>
      )}
    </>
  );
}
