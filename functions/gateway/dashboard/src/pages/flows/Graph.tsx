import { useMemo } from 'react';
import { Link } from '../../app/Link';
import { paths } from '../../app/paths';
import { count } from '../../format/number';
import { Badge } from '../../ui/Badge';
import { Card } from '../../ui/Card';
import { StatusBadge } from '../../ui/StatusBadge';
import type { Flow } from '../batches/queries';
import { countsText, type GraphEdge, type GraphNode, layout } from './layout';
import './Graph.css';

const WIDTH = 200; // of a node, in pixels
const HEIGHT = 84;
const ACROSS = 270; // from one layer to the next
const DOWN = 104;

/** Graph draws the jobs of a flow from left to right, each behind those that it waits for. */
export function Graph({ flow: { flowId, jobs } }: { flow: Flow }) {
  const { nodes, edges, layers, rows, hidden } = useMemo(() => layout(jobs), [jobs]);
  const size = { width: (layers - 1) * ACROSS + WIDTH, height: rows * DOWN };
  return (
    <Card title="Graph" aside={<span className="small muted">{edges.length > 0 ? 'A line without a word: completed' : ''}</span>}>
      <div className="graph-scroll" tabIndex={0} role="region" aria-label="Graph of the flow">
        <div className="graph" style={size}>
          <svg width={size.width} height={size.height} aria-hidden="true" focusable="false">
            {edges.map((edge) => (
              <path key={`${edge.from.key} ${edge.to.key} ${edge.on}`} className={`graph-edge graph-edge-${edge.on}`} d={line(edge)} />
            ))}
          </svg>
          {edges.filter(({ on }) => on !== 'completed').map((edge) => (
            <span key={`${edge.from.key} ${edge.to.key} ${edge.on}`} className="graph-condition" style={middle(edge)} aria-hidden="true">
              {edge.on}
            </span>
          ))}
          <ol>
            {nodes.map((node) => (
              <li key={node.key} className="graph-node" style={{ left: node.layer * ACROSS, top: node.row * DOWN, width: WIDTH, height: HEIGHT }}>
                <Content node={node} flowId={flowId} />
                <span className="visually-hidden">{waits(node)}</span>
              </li>
            ))}
          </ol>
        </div>
      </div>
      {hidden > 0 && (
        <p className="small muted">
          {count(hidden)} further jobs are not drawn. <Link href={paths.jobs({ batchId: flowId })}>All jobs</Link>
        </p>
      )}
    </Card>
  );
}

function Content({ node, flowId }: { node: GraphNode; flowId: string }) {
  const [job] = node.jobs;
  if (!job) {
    return null;
  }
  if (node.jobs.length > 1) {
    return (
      <>
        <Link href={paths.jobs({ batchId: flowId, type: job.jobType })} className="graph-name">
          {count(node.jobs.length)} × {node.name}
        </Link>
        <span className="small">{countsText(node.counts)}</span>
      </>
    );
  }
  return (
    <>
      <Link href={paths.job(job.jobId)} className="graph-name" title={node.name}>
        {node.name}
      </Link>
      <span className="small muted graph-type">
        {job.jobType}
        {job.forEach && ', for each element'}
      </span>
      <span className="graph-state">
        {job.status ? <StatusBadge status={job.status} /> : <Badge>deleted</Badge>}
        {job.elements && (
          <Link href={paths.jobs({ fanOutId: job.jobId })} className="small tabular" title={countsText(job.elements.counts ?? {})}>
            {count(ended(job.elements.counts))} of {count(job.elements.total)}
            <span className="visually-hidden"> elements</span>
          </Link>
        )}
      </span>
    </>
  );
}

const ended = (counts?: { COMPLETED?: number; FAILED?: number; CANCELLED?: number } | null) =>
  (counts?.COMPLETED ?? 0) + (counts?.FAILED ?? 0) + (counts?.CANCELLED ?? 0);

/** waits returns in words what the lines show. */
function waits({ jobs: [job] }: GraphNode): string {
  const after = job?.after.slice(0, 10).map(({ name, jobId, on }) => `${name ?? jobId} ${on}`) ?? [];
  return after.length === 0 ? '' : `, after ${after.join(', ')}${(job?.after.length ?? 0) > 10 ? ' and more' : ''}`;
}

const ends = ({ from, to }: GraphEdge) => ({
  x1: from.layer * ACROSS + WIDTH,
  y1: from.row * DOWN + HEIGHT / 2,
  x2: to.layer * ACROSS,
  y2: to.row * DOWN + HEIGHT / 2,
});

function line(edge: GraphEdge): string {
  const { x1, y1, x2, y2 } = ends(edge);
  const bend = (ACROSS - WIDTH) / 2;
  const dip = y1 === y2 && edge.to.layer - edge.from.layer > 1 ? 0.7 * DOWN : 0; // below the nodes between them
  return `M${x1} ${y1}C${x1 + bend} ${y1 + dip} ${x2 - bend} ${y2 + dip} ${x2} ${y2}`;
}

function middle(edge: GraphEdge) {
  const { x2, y1, y2 } = ends(edge);
  return { left: x2 - (ACROSS - WIDTH) / 2, top: edge.to.layer - edge.from.layer > 1 ? y2 : (y1 + y2) / 2 };
}
