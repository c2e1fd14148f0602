import type { Schemas } from '../../api/client';
import { type Status, STATUSES } from '../../ui/StatusBadge';

export type FlowJob = Schemas['FlowJob'];
type Condition = Schemas['Condition'];
export type Counts = Partial<Record<Status, number>>;

/** GraphNode is a job of a flow, or equal siblings: jobs of one type that wait for the same jobs. */
export interface GraphNode {
  key: string;
  name: string; // of the job; of many: what their names have in common, or else their job type
  names: string[]; // of its jobs
  jobs: FlowJob[]; // in the same order
  counts: Counts; // by state; those that are deleted are not counted
  layer: number; // how many jobs come before it, on the longest way
}

export interface GraphEdge {
  from: GraphNode;
  to: GraphNode;
  on: Condition;
}

export interface Nodes {
  nodes: GraphNode[]; // by layer, in natural order
  edges: GraphEdge[];
  hidden: number; // jobs that are in no node
}

/** MOST is how many nodes are drawn. */
export const MOST = 150;

/** SIBLINGS is from how many equal siblings on one node stands for them. */
const SIBLINGS = 8;

export const byName = new Intl.Collator('en', { numeric: true }).compare;

/**
 * nodesOf puts the jobs of a flow into layers: each job is behind all that it waits for. Eight equal siblings and more
 * become one node, unless its key is unfolded. Beyond most nodes, any two do. What does not fit even then is left out,
 * from the last layer on.
 */
export function nodesOf(jobs: Record<string, FlowJob>, unfolded: ReadonlySet<string> = new Set(), most = MOST): Nodes {
  const layers = layersOf(jobs);
  let made = build(jobs, layers, SIBLINGS, unfolded);
  if (made.nodes.length > most) {
    made = build(jobs, layers, SIBLINGS, new Set());
  }
  if (made.nodes.length > most) {
    made = build(jobs, layers, 2, new Set());
  }
  const { nodes, nodeOf } = made;
  const drawn = nodes.slice(0, most);
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
  return {
    nodes: drawn,
    edges: [...edges.values()],
    hidden: nodes.slice(most).reduce((sum, node) => sum + node.jobs.length, 0),
  };
}

/** layersOf returns the names of the jobs of each layer, in natural order. Jobs that wait for themselves would be left out. */
function layersOf(jobs: Record<string, FlowJob>): string[][] {
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
  const layers: string[][] = [];
  let layer = [...left].flatMap(([name, n]) => (n === 0 ? [name] : []));
  while (layer.length > 0) {
    layers.push(layer.sort(byName));
    const next: string[] = [];
    for (const name of layer) {
      for (const dependent of after.get(name) ?? []) {
        const n = (left.get(dependent) ?? 0) - 1;
        left.set(dependent, n);
        if (n === 0) {
          next.push(dependent);
        }
      }
    }
    layer = next;
  }
  return layers;
}

function build(jobs: Record<string, FlowJob>, layers: readonly string[][], least: number, unfolded: ReadonlySet<string>) {
  const nodeOf = new Map<string, GraphNode>(); // by the name of a job
  const nodes: GraphNode[] = [];
  const add = (key: string, names: string[], layer: number) => {
    const members = names.flatMap((name) => jobs[name] ?? []);
    const counts: Counts = {};
    for (const { status } of members) {
      if (status) {
        counts[status] = (counts[status] ?? 0) + 1;
      }
    }
    const name = names.length === 1 ? (names[0] ?? '') : (commonName(names) ?? members[0]?.jobType ?? '');
    const node = { key, name, names, jobs: members, counts, layer };
    nodes.push(node);
    names.forEach((each) => nodeOf.set(each, node));
  };
  layers.forEach((layer, depth) => {
    const groups = new Map<string, string[]>();
    for (const name of layer) {
      const job = jobs[name];
      const key = !job || job.forEach ? name : equality(job, parentsOf(job, nodeOf));
      const names = groups.get(key);
      if (names) {
        names.push(name);
      } else {
        groups.set(key, [name]);
      }
    }
    for (const names of groups.values()) {
      const key = `${names[0]} *`;
      if (names.length < least || unfolded.has(key)) {
        names.forEach((name) => add(name, [name], depth));
      } else {
        add(key, names, depth);
      }
    }
  });
  return { nodes, nodeOf };
}

function parentsOf(job: FlowJob, nodeOf: Map<string, GraphNode>): { node: GraphNode; on: Condition }[] {
  return job.after.flatMap((edge) => {
    const node = edge.name === undefined ? undefined : nodeOf.get(edge.name);
    return node ? [{ node, on: edge.on }] : [];
  });
}

/** equality is the same for jobs of one type behind the same nodes. */
function equality(job: FlowJob, parents: { node: GraphNode; on: Condition }[]): string {
  const before = [...new Set(parents.map(({ node, on }) => `${node.key} ${on}`))].sort();
  return `${job.jobType} ${before.length > 20 ? `${before.length} ${before[0]}` : before.join(',')}`;
}

/** commonName returns how all of the names begin, as worker-number-*; null if they have nothing in common. */
function commonName(names: readonly string[]): string | null {
  let common = names[0] ?? '';
  for (const name of names) {
    while (!name.startsWith(common)) {
      common = common.slice(0, -1);
    }
  }
  common = common.replace(/[0-9]+$/, '');
  return common.length < 3 ? null : `${common}*`;
}

/** countsText returns how many jobs there are in each state. */
export function countsText(counts: Counts): string {
  return STATUSES.filter((status) => counts[status])
    .map((status) => `${counts[status]?.toLocaleString('en-US')} ${status.toLowerCase()}`)
    .join(', ');
}

/** progressText returns how many jobs have ended well, and how many have not: 58/60, 2 failed. */
export function progressText(counts: Counts, total: number): string {
  const bad = (['FAILED', 'CANCELLED'] as const).filter((status) => counts[status]);
  const rest = bad.map((status) => `, ${counts[status]?.toLocaleString('en-US')} ${status.toLowerCase()}`).join('');
  return `${(counts.COMPLETED ?? 0).toLocaleString('en-US')}/${total.toLocaleString('en-US')}${rest}`;
}
