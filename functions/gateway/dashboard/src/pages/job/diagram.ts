import type { Status } from '../../ui/StatusBadge';
import type { Job } from './queries';

export interface Node {
  status: Status;
  x: number;
  y: number;
}

export interface Edge {
  from: Status;
  to: Status;
}

export const NODE = { width: 96, height: 30 };

/** NODES and EDGES are the states and the transitions that docs/design.md draws. */
export const NODES: readonly Node[] = [
  { status: 'SCHEDULED', x: 0, y: 75 },
  { status: 'PENDING', x: 132, y: 75 },
  { status: 'QUEUED', x: 264, y: 75 },
  { status: 'RUNNING', x: 396, y: 75 },
  { status: 'RETRYING', x: 264, y: 150 },
  { status: 'WAITING', x: 396, y: 0 },
  { status: 'COMPLETED', x: 548, y: 0 },
  { status: 'FAILED', x: 548, y: 75 },
  { status: 'CANCELLED', x: 548, y: 150 },
];

export const EDGES: readonly Edge[] = [
  { from: 'SCHEDULED', to: 'PENDING' },
  { from: 'PENDING', to: 'QUEUED' },
  { from: 'QUEUED', to: 'RUNNING' },
  { from: 'RUNNING', to: 'WAITING' },
  { from: 'RUNNING', to: 'COMPLETED' },
  { from: 'RUNNING', to: 'FAILED' },
  { from: 'RUNNING', to: 'CANCELLED' },
  { from: 'RUNNING', to: 'RETRYING' },
  { from: 'RETRYING', to: 'PENDING' },
  { from: 'WAITING', to: 'COMPLETED' },
];

/** wayOf returns the states of the job in their order, the present one last. */
export function wayOf(job: Pick<Job, 'history' | 'status'>): Status[] {
  const way: Status[] = [];
  for (const { from, to } of job.history) {
    if (way.length === 0 && from !== null) {
      way.push(from);
    }
    if (way.at(-1) !== to) {
      way.push(to);
    }
  }
  if (way.at(-1) !== job.status) {
    way.push(job.status);
  }
  return way;
}

/** edgesOf returns the usual transitions and other ones of the job, with the number of times that it made each. */
export function edgesOf(way: readonly Status[]): (Edge & { times: number })[] {
  const edges = EDGES.map((edge) => ({ ...edge, times: 0 }));
  way.slice(1).forEach((to, i) => {
    const from = way[i];
    const known = edges.find((edge) => edge.from === from && edge.to === to);
    if (known) {
      known.times++;
    } else if (from !== undefined) {
      edges.push({ from, to, times: 1 });
    }
  });
  return edges;
}
