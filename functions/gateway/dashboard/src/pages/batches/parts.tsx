import { count } from '../../format/number';
import { Badge } from '../../ui/Badge';
import { Bar } from '../../ui/Bar';
import { type BatchSummary, nameOf } from './queries';

export function State({ batch: { status } }: { batch: BatchSummary }) {
  const tone = status === 'COMPLETED' ? 'good' : status === 'OPEN' || status === 'RUNNING' ? 'plain' : 'warn';
  return <Badge tone={tone}>{status.toLowerCase()}</Badge>;
}

/** Progress shows how many jobs of a batch have ended, as far as that is known. */
export function Progress({ batch }: { batch: BatchSummary }) {
  if (batch.total === null || batch.percent === null) {
    return <span className="small muted">not counted</span>;
  }
  if (batch.total === 0) {
    return <span className="small muted">no jobs</span>;
  }
  return (
    <>
      <Bar label={`Progress of ${nameOf(batch)}`} value={batch.percent} max={100} />
      <span className="small muted tabular">
        {batch.percent} % of {count(batch.total)} {batch.total === 1 ? 'job' : 'jobs'}
      </span>
    </>
  );
}
