import { duration } from '../../format/time';
import { StatusBadge } from '../../ui/StatusBadge';
import { useNow } from '../../ui/now';
import { axisOf, type Bar, barsOf } from './bars';
import { type GraphNode, progressText } from './nodes';
import type { Summary } from './queries';
import './Graph.css';

interface Props {
  nodes: readonly GraphNode[];
  known: ReadonlyMap<string, Summary>;
  chosen: string | null;
  onChoose: (node: GraphNode) => void;
}

/** Waterfall shows when the jobs of a flow waited and ran, in the order of their starts, on one axis. */
export function Waterfall({ nodes, known, chosen, onChoose }: Props) {
  const now = useNow().getTime();
  const bars = barsOf(nodes, known);
  const axis = axisOf(bars, now);
  return (
    <>
      <ol className="waterfall" aria-label="Jobs by the time of their start">
        {bars.map((bar) => (
          <li key={bar.node.key}>
            <Row bar={bar} axis={axis} now={now} isChosen={chosen !== null && bar.node.names.includes(chosen)} onChoose={onChoose} />
          </li>
        ))}
      </ol>
      <p className="small muted">{duration(axis.to - axis.from)} in all, from the first acceptance to the last end.</p>
    </>
  );
}

function Row({ bar, axis, now, isChosen, onChoose }: { bar: Bar; axis: { from: number; to: number }; now: number; isChosen: boolean; onChoose: Props['onChoose'] }) {
  const { node, started, ended, median } = bar;
  const tone = (node.counts.FAILED ?? 0) > 0 ? 'failed' : ended === null ? 'running' : 'completed';
  const share = (at: number) => `${((at - axis.from) / (axis.to - axis.from)) * 100}%`;
  const until = ended ?? now;
  return (
    <button type="button" className="waterfall-row" aria-pressed={isChosen} onClick={() => onChoose(node)}>
      <span className="graph-name" title={node.name}>
        {node.name}
      </span>
      <span className="waterfall-track" aria-hidden="true">
        {started !== null && (
          <span
            className={`waterfall-bar status-${tone}`}
            style={{ left: `min(${share(started)}, 100% - 3px)`, width: `${((until - started) / (axis.to - axis.from)) * 100}%` }}
          />
        )}
      </span>
      <span className="waterfall-end">
        {started !== null && <span className="tabular">{duration(Math.max(0, until - started))}</span>}
        <End node={node} />
        {median !== null && <span className="muted">p50 {duration(median)}</span>}
      </span>
    </button>
  );
}

function End({ node }: { node: GraphNode }) {
  const [job] = node.jobs;
  if (node.jobs.length > 1) {
    return <span>{progressText(node.counts, node.jobs.length)}</span>;
  }
  return job?.status ? <StatusBadge status={job.status} /> : <span className="muted">deleted</span>;
}
