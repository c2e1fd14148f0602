import { expect, it } from 'vitest';
import { nodesOf } from './nodes';
import type { Summary } from './queries';
import { axisOf, barsOf } from './bars';

const at = (seconds: number | null) => (seconds === null ? null : new Date(seconds * 1000).toISOString());
const summary = (createdAt: number, startedAt: number | null, finishedAt: number | null) =>
  ({ createdAt: at(createdAt), startedAt: at(startedAt), finishedAt: at(finishedAt) }) as Summary;
const jobs = Object.fromEntries(
  ['list', ...Array.from({ length: 8 }, (_, i) => `each-${i}`)].map((name) => [
    name,
    { jobId: name, jobType: 'MAIL', status: 'COMPLETED' as const, after: name === 'list' ? [] : [{ name: 'list', jobId: 'list', on: 'completed' as const }] },
  ]),
);
const { nodes } = nodesOf(jobs);

it('has a bar for each node, over all of its jobs, with the median of their times', () => {
  const known = new Map<string, Summary>([['list', summary(0, 1, 2)]]);
  for (let i = 0; i < 8; i++) {
    known.set(`each-${i}`, summary(0, 3 + i, 4 + 2 * i));
  }
  const bars = barsOf(nodes, known);
  expect(bars.map(({ node, started, ended, median }) => [node.name, started, ended, median])).toEqual([
    ['list', 1000, 2000, null],
    ['each-*', 3000, 18000, 5000],
  ]);
  expect(axisOf(bars, 20_000)).toEqual({ from: 0, to: 18_000 });
});
it('goes on to now while a job runs, and puts those last that wait', () => {
  const known = new Map<string, Summary>([['each-0', summary(0, 3, null)], ['list', summary(0, null, null)]]);
  const bars = barsOf(nodes, known);
  expect(bars.map(({ node, ended }) => [node.name, ended])).toEqual([['each-*', null], ['list', null]]);
  expect(axisOf(bars, 20_000)).toEqual({ from: 0, to: 20_000 });
});
it('has an axis where nothing is known', () => {
  expect(axisOf(barsOf(nodes, new Map()), 5)).toEqual({ from: 5, to: 6 });
});
