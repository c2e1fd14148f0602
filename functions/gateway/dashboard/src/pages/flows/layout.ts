import type { Schemas } from '../../api/client';
import { type Status, STATUSES } from '../../ui/StatusBadge';

export type FlowJob = Schemas['FlowJob'];
type Condition = Schemas['Condition'];
export type Counts = Partial<Record<Status, number>>;

/** GraphNode is a job of a flow, or many that stand for one another in a large flow. */
export interface GraphNode {
  key: string;
  name: string; // of the job; of many: their job type
  jobs: FlowJob[];
  counts: Counts; // by state; those that are deleted are not counted
  layer: number; // how many jobs come before it, on the longest way
  row: number; // in its layer
}

export interface GraphEdge {
  from: GraphNode;
  to: GraphNode;
  on: Condition;
}

export interface Layout {
  nodes: GraphNode[];
  edges: GraphEdge[];
  layers: number;
  rows: number;
  hidden: number; // jobs that are in no node
}

/** MOST is how many nodes are drawn. */
export const MOST = 150;

/**
 * layout puts the jobs of a flow into layers: each job is behind all that it waits for. Jobs of one type that wait for the
 * same jobs become one node if there are more than most jobs. What does not fit even then is left out, from the last layer on.
 */
export function layout(jobs: Record<string, FlowJob>, most = MOST): Layout {
  const order = inOrder(jobs);
  const groups = order.length > most;
  const nodeOf = new Map<string, GraphNode>(); // by the name of a job
  const nodes = new Map<string, GraphNode>();
  for (const name of order) {
    const job = jobs[name];
    if (!job) {
      continue;
    }
    const parents = parentsOf(job, nodeOf);
    const key = groups && !job.forEach ? groupKey(job, parents) : name;
    let node = nodes.get(key);
    if (!node) {
      const layer = parents.reduce((deepest, { node: parent }) => Math.max(deepest, parent.layer + 1), 0);
      node = { key, name, jobs: [], counts: {}, layer, row: 0 };
      nodes.set(key, node);
    }
    node.jobs.push(job);
    if (node.jobs.length > 1) {
      node.name = job.jobType;
    }
    if (job.status) {
      node.counts[job.status] = (node.counts[job.status] ?? 0) + 1;
    }
    nodeOf.set(name, node);
  }
  const drawn = [...nodes.values()].sort((a, b) => a.layer - b.layer).slice(0, most);
  const shown = new Set(drawn);
  const edges = new Map<string, GraphEdge>();
  for (const node of drawn) {
    const [first] = node.jobs;
    for (const { node: from, on } of first ? parentsOf(first, nodeOf) : []) {
      if (shown.has(from)) {
        edges.set(`${from.key} ${node.key} ${on}`, { from, to: node, on });
      }
    }
  }
  const rows = arrange(drawn, [...edges.values()]);
  return {
    nodes: drawn,
    edges: [...edges.values()],
    layers: (drawn.at(-1)?.layer ?? -1) + 1,
    rows,
    hidden: order.length - drawn.reduce((sum, node) => sum + node.jobs.length, 0),
  };
}

/** inOrder returns the names of the jobs, each after those that it waits for. A job that waits for itself would be left out. */
function inOrder(jobs: Record<string, FlowJob>): string[] {
  const left = new Map<string, number>();
  const after = new Map<string, string[]>();
  for (const [name, job] of Object.entries(jobs)) {
    const names = job.after.flatMap((edge) => (edge.name !== undefined && jobs[edge.name] ? [edge.name] : []));
    left.set(name, names.length);
    for (const before of names) {
      const dependents = after.get(before);
      if (dependents) {
        dependents.push(name);
      } else {
        after.set(before, [name]);
      }
    }
  }
  const order = [...left].flatMap(([name, n]) => (n === 0 ? [name] : []));
  for (let i = 0; i < order.length; i++) {
    for (const next of after.get(order[i] ?? '') ?? []) {
      const n = (left.get(next) ?? 0) - 1;
      left.set(next, n);
      if (n === 0) {
        order.push(next);
      }
    }
  }
  return order;
}

function parentsOf(job: FlowJob, nodeOf: Map<string, GraphNode>): { node: GraphNode; on: Condition }[] {
  return job.after.flatMap((edge) => {
    const node = edge.name === undefined ? undefined : nodeOf.get(edge.name);
    return node ? [{ node, on: edge.on }] : [];
  });
}

function groupKey(job: FlowJob, parents: { node: GraphNode; on: Condition }[]): string {
  const before = [...new Set(parents.map(({ node, on }) => `${node.key} ${on}`))].sort();
  return `${parents.length === 0 ? 0 : 1} ${job.jobType} ${before.length > 20 ? `${before.length} ${before[0]}` : before.join(',')}`;
}

/** arrange gives each node its row: near the rows of the nodes before it. It returns how many rows there are. */
function arrange(nodes: GraphNode[], edges: GraphEdge[]): number {
  const before = new Map<GraphNode, GraphNode[]>();
  for (const { from, to } of edges) {
    before.set(to, [...(before.get(to) ?? []), from]);
  }
  const layers: GraphNode[][] = [];
  for (const node of nodes) {
    (layers[node.layer] ??= []).push(node);
  }
  let rows = 0;
  for (const layer of layers) {
    const place = (node: GraphNode) => {
      const parents = before.get(node) ?? [];
      return parents.length === 0 ? 0 : parents.reduce((sum, parent) => sum + parent.row, 0) / parents.length;
    };
    const places = new Map((layer ?? []).map((node) => [node, place(node)]));
    (layer ?? []).sort((a, b) => (places.get(a) ?? 0) - (places.get(b) ?? 0));
    layer?.forEach((node, row) => (node.row = row));
    rows = Math.max(rows, layer?.length ?? 0);
  }
  return rows;
}

/** countsText returns how many jobs there are in each state. */
export function countsText(counts: Counts): string {
  return STATUSES.filter((status) => counts[status])
    .map((status) => `${counts[status]?.toLocaleString('en-US')} ${status.toLowerCase()}`)
    .join(', ');
}
