import type { GraphNode } from './nodes';
import type { Summary } from './queries';

/** Bar is when a node's jobs waited and ran, in milliseconds since 1970. */
export interface Bar {
  node: GraphNode;
  from: number | null; // the first acceptance; null: its jobs are not known
  started: number | null; // null: none has started
  ended: number | null; // null: some have not ended
  median: number | null; // how long its jobs ran, of many
}

/** barsOf returns the nodes by the time of their start; those that have not started are last, in the order of the graph. */
export function barsOf(nodes: readonly GraphNode[], known: ReadonlyMap<string, Summary>): Bar[] {
  const bars = nodes.map((node) => barOf(node, known));
  return bars.sort((a, b) => (a.started ?? Infinity) - (b.started ?? Infinity) || a.node.layer - b.node.layer || 0);
}

function barOf(node: GraphNode, known: ReadonlyMap<string, Summary>): Bar {
  const jobs = node.jobs.flatMap(({ jobId }) => known.get(jobId) ?? []);
  const times = (at: 'createdAt' | 'startedAt' | 'finishedAt') =>
    jobs.flatMap((job) => (job[at] === null ? [] : [Date.parse(job[at])]));
  const ends = times('finishedAt');
  const ran = jobs.flatMap(({ startedAt, finishedAt }) => (startedAt && finishedAt ? [Date.parse(finishedAt) - Date.parse(startedAt)] : []));
  const least = (all: number[]) => (all.length === 0 ? null : all.reduce((a, b) => Math.min(a, b)));
  return {
    node,
    from: least(times('createdAt')),
    started: least(times('startedAt')),
    ended: ends.length === node.jobs.length && ends.length > 0 ? ends.reduce((a, b) => Math.max(a, b)) : null,
    median: ran.length > 1 ? (ran.sort((a, b) => a - b)[Math.floor(ran.length / 2)] ?? null) : null,
  };
}

/** axisOf returns the times between which the bars lie. */
export function axisOf(bars: readonly Bar[], now: number): { from: number; to: number } {
  const starts = bars.flatMap(({ from }) => from ?? []);
  const ends = bars.map(({ started, ended }) => ended ?? (started === null ? 0 : now));
  const from = starts.length === 0 ? now : starts.reduce((a, b) => Math.min(a, b));
  return { from, to: ends.reduce((a, b) => Math.max(a, b), from + 1) };
}
