import { answer, api } from '../../api/client';
import { useMay } from '../../api/me';
import { useAction } from '../../api/useAction';
import { count } from '../../format/number';
import { Badge } from '../../ui/Badge';
import { Bar } from '../../ui/Bar';
import { Button } from '../../ui/Button';
import { answered, type Operation } from './words';

export function State({ operation: { status } }: { operation: Operation }) {
  const tone = status === 'COMPLETED' ? 'good' : status === 'RUNNING' ? 'plain' : 'warn';
  return <Badge tone={tone}>{status.toLowerCase()}</Badge>;
}

/** Progress shows the progress of an operation. Until it has reached all jobs, their number is unknown. */
export function Progress({ operation }: { operation: Operation }) {
  const { done, of } = answered(operation);
  if (of === 0 && operation.finishedAt !== null) {
    return <span className="small muted">No job matched.</span>;
  }
  return (
    <>
      <Bar label={`Progress of ${operation.operationId}`} value={done} max={of} />
      <span className="small muted tabular">
        {count(done)} of {count(of)}
        {operation.progress.walked ? '' : ' so far'}
      </span>
    </>
  );
}

export function Abort({ operation }: { operation: Operation }) {
  const may = useMay();
  const abort = useAction({
    run: (operationId: string) =>
      answer(api.POST('/api/operations/{operationId}/abort', { params: { path: { operationId } } })),
    done: () => 'The operation reaches no more jobs. The commands that it has given stay in force.',
    changes: ['operations'],
  });
  if (!may('operate') || operation.status !== 'RUNNING') {
    return null;
  }
  return (
    <Button
      small
      icon="cancel"
      variant="danger"
      busy={abort.isPending}
      aria-label={`Abort ${operation.command} ${operation.operationId}`}
      onClick={() => abort.mutate(operation.operationId)}
    >
      Abort
    </Button>
  );
}
