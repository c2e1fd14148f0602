import type { Status } from '../../ui/StatusBadge';
import { edgesOf, NODE, NODES, wayOf, type Node } from './diagram';
import type { Job } from './queries';

/** StateDiagram draws all states, and the transitions of this job. */
export function StateDiagram({ job }: { job: Job }) {
  const way = wayOf(job);
  const edges = edgesOf(way);
  return (
    <>
      <div className="diagram">
        <svg viewBox="-4 -8 652 196" role="img" aria-label={`The way of the job: ${way.join(', then ')}`}>
          <defs>
            <Arrow id="arrow" className="arrow" />
            <Arrow id="arrow-taken" className="arrow arrow-taken" />
          </defs>
          {edges.map((edge) => (
            <path
              key={`${edge.from}-${edge.to}`}
              className={edge.times > 0 ? 'edge edge-taken' : 'edge'}
              markerEnd={edge.times > 0 ? 'url(#arrow-taken)' : 'url(#arrow)'}
              d={line(nodeOf(edge.from), nodeOf(edge.to))}
            />
          ))}
          {NODES.map((node) => (
            <State key={node.status} node={node} visited={way.includes(node.status)} current={node.status === job.status} />
          ))}
        </svg>
      </div>
      <p className="small muted">{way.join(' → ')}</p>
    </>
  );
}

function Arrow({ id, className }: { id: string; className: string }) {
  return (
    <marker id={id} className={className} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="9" markerHeight="9" markerUnits="userSpaceOnUse" orient="auto">
      <path d="M0 0 8 4 0 8z" />
    </marker>
  );
}

function State({ node, visited, current }: { node: Node; visited: boolean; current: boolean }) {
  const classes = ['node', `status-${node.status.toLowerCase()}`, visited ? 'node-visited' : '', current ? 'node-current' : ''];
  return (
    <g className={classes.join(' ')} transform={`translate(${node.x} ${node.y})`}>
      <rect width={NODE.width} height={NODE.height} rx="15" />
      <text x={NODE.width / 2} y={NODE.height / 2}>
        {node.status}
      </text>
    </g>
  );
}

const BY_STATUS = Object.fromEntries(NODES.map((node) => [node.status, node])) as Record<Status, Node>;

function nodeOf(status: Status): Node {
  return BY_STATUS[status];
}

/** line begins at the side of a state that faces the other one. */
function line(from: Node, to: Node): string {
  const middle = NODE.height / 2;
  if (from.x === to.x) {
    const down = to.y > from.y;
    const x = from.x + NODE.width / 2;
    return `M${x} ${down ? from.y + NODE.height : from.y} L${x} ${down ? to.y - 2 : to.y + NODE.height + 2}`;
  }
  const right = to.x > from.x;
  const [x1, x2] = right ? [from.x + NODE.width, to.x - 2] : [from.x, to.x + NODE.width + 2];
  const bend = (x1 + x2) / 2;
  return `M${x1} ${from.y + middle} C${bend} ${from.y + middle} ${bend} ${to.y + middle} ${x2} ${to.y + middle}`;
}
