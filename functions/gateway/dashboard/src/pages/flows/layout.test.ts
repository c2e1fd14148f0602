import { describe, expect, test } from 'vitest';
import { countsText, type FlowJob, layout } from './layout';

const job = (after: string[] = [], change: Partial<FlowJob> = {}): FlowJob => ({
  jobId: 'x',
  jobType: 'MAIL',
  status: 'PENDING',
  after: after.map((name) => ({ name, jobId: 'x', on: 'completed' })),
  ...change,
});

const byName = (flow: Record<string, FlowJob>, most?: number) =>
  Object.fromEntries(layout(flow, most).nodes.map(({ name, layer, row, jobs }) => [name, [layer, row, jobs.length]]));

describe('layout', () => {
  test('puts each job behind those that it waits for', () => {
    expect(byName({ d: job(['b', 'c']), c: job(['b']), b: job(['a']), a: job() })).toEqual({
      a: [0, 0, 1], b: [1, 0, 1], c: [2, 0, 1], d: [3, 0, 1],
    });
  });

  test('keeps jobs near those before them', () => {
    const { nodes, rows } = layout({ a: job(), b: job(), ofB: job(['b']), ofA: job(['a']) });
    const row = (name: string) => nodes.find((node) => node.name === name)?.row;
    expect([row('ofA'), row('ofB'), rows]).toEqual([row('a'), row('b'), 2]);
  });

  test('has an edge for each condition, and none to jobs outside', () => {
    const b = job(['a']);
    b.after = [{ name: 'a', jobId: 'x', on: 'failed' }, { jobId: 'y', on: 'ended' }];
    expect(layout({ a: job(), b }).edges.map(({ from, to, on }) => [from.name, to.name, on])).toEqual([['a', 'b', 'failed']]);
  });

  test('groups the jobs of a large flow, but no fan-out', () => {
    const flow: Record<string, FlowJob> = { list: job([], { jobType: 'LIST' }), all: job([], { jobType: 'END' }) };
    for (let i = 0; i < 9_000; i++) {
      flow[`job${i}`] = job(['list'], { status: i % 3 === 0 ? 'COMPLETED' : 'RUNNING' });
    }
    flow['all'] = job(Object.keys(flow).filter((name) => name.startsWith('job')), { jobType: 'END' });
    flow['each'] = job(['list'], { forEach: { $output: 'list' } });
    const from = performance.now();
    const { nodes, edges, hidden } = layout(flow);
    expect(performance.now() - from).toBeLessThan(2_000);
    expect(nodes.map(({ name, jobs, layer }) => [name, jobs.length, layer])).toEqual([
      ['list', 1, 0], ['MAIL', 9_000, 1], ['each', 1, 1], ['all', 1, 2],
    ]);
    expect([edges.length, hidden]).toEqual([3, 0]);
    expect(countsText(nodes[1]?.counts ?? {})).toBe('6,000 running, 3,000 completed');
  });

  test('leaves out the end of a long chain', () => {
    const flow: Record<string, FlowJob> = { j0: job() };
    for (let i = 1; i < 10_000; i++) {
      flow[`j${i}`] = job([`j${i - 1}`]);
    }
    const { nodes, layers, hidden } = layout(flow, 100);
    expect([nodes.length, layers, hidden]).toEqual([100, 100, 9_900]);
  });
});
