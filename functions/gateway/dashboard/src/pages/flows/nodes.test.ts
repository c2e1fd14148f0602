import { describe, expect, test } from 'vitest';
import { layout } from './layout';
import { countsText, type FlowJob, nodesOf, progressText } from './nodes';

const job = (after: string[] = [], change: Partial<FlowJob> = {}): FlowJob => ({
  jobId: 'x',
  jobType: 'MAIL',
  status: 'PENDING',
  after: after.map((name) => ({ name, jobId: 'x', on: 'completed' })),
  ...change,
});

const wide = (n: number): Record<string, FlowJob> => ({
  list: job(),
  ...Object.fromEntries(Array.from({ length: n }, (_, i) => [`worker-number-${i}`, job(['list'], { status: i < 2 ? 'FAILED' : 'COMPLETED' })])),
});

describe('nodesOf', () => {
  test('puts each job behind those that it waits for', () => {
    const { nodes } = nodesOf({ d: job(['b', 'c']), c: job(['b']), b: job(['a']), a: job() });
    expect(nodes.map(({ name, layer }) => [name, layer])).toEqual([['a', 0], ['b', 1], ['c', 2], ['d', 3]]);
  });

  test('orders names by their numbers', () => {
    expect(nodesOf({ w10: job(), w2: job(), w1: job() }).nodes.map(({ name }) => name)).toEqual(['w1', 'w2', 'w10']);
  });

  test('has an edge for each condition, and none to jobs outside', () => {
    const b = job(['a']);
    b.after = [{ name: 'a', jobId: 'x', on: 'failed' }, { jobId: 'y', on: 'ended' }];
    expect(nodesOf({ a: job(), b }).edges.map(({ from, to, on }) => [from.name, to.name, on])).toEqual([['a', 'b', 'failed']]);
  });

  test('folds eight equal siblings, not seven, and unfolds them', () => {
    expect(nodesOf(wide(7)).nodes).toHaveLength(8);
    const [, folded] = nodesOf(wide(60)).nodes;
    expect([folded?.name, folded?.names.slice(0, 3), progressText(folded?.counts ?? {}, 60)]).toEqual([
      'worker-number-*', ['worker-number-0', 'worker-number-1', 'worker-number-2'], '58/60, 2 failed',
    ]);
    expect(nodesOf(wide(60), new Set([folded?.key ?? ''])).nodes).toHaveLength(61);
  });

  test('does not fold jobs behind different ones, nor a fan-out', () => {
    const flow: Record<string, FlowJob> = { a: job(), b: job() };
    for (let i = 0; i < 8; i++) {
      flow[`of-a-${i}`] = job([i % 2 ? 'a' : 'b']);
      flow[`each-${i}`] = job(['a'], { forEach: { $output: 'a' } });
    }
    expect(nodesOf(flow).nodes).toHaveLength(18);
  });

  test('groups the jobs of a large flow', () => {
    const flow: Record<string, FlowJob> = { list: job([], { jobType: 'LIST' }) };
    for (let i = 0; i < 9_000; i++) {
      flow[`job${i}`] = job(['list'], { status: i % 3 === 0 ? 'COMPLETED' : 'RUNNING' });
    }
    flow['all'] = job(Object.keys(flow).filter((name) => name.startsWith('job')), { jobType: 'END' });
    flow['each'] = job(['list'], { forEach: { $output: 'list' } });
    const from = performance.now();
    const made = nodesOf(flow);
    expect(performance.now() - from).toBeLessThan(2_000);
    expect(made.nodes.map(({ name, jobs, layer }) => [name, jobs.length, layer])).toEqual([
      ['list', 1, 0], ['each', 1, 1], ['job*', 9_000, 1], ['all', 1, 2],
    ]);
    expect([made.edges.length, made.hidden]).toEqual([3, 0]);
    expect(countsText(made.nodes[2]?.counts ?? {})).toBe('6,000 running, 3,000 completed');
    expect(nodesOf(flow, new Set([made.nodes[2]?.key ?? ''])).nodes).toHaveLength(4); // too many to unfold
  });

  test('leaves out the end of a long chain', () => {
    const flow: Record<string, FlowJob> = { j0: job() };
    for (let i = 1; i < 10_000; i++) {
      flow[`j${i}`] = job([`j${i - 1}`]);
    }
    const { nodes, hidden } = nodesOf(flow, new Set(), 100);
    expect([nodes.length, nodes.at(-1)?.layer, hidden]).toEqual([100, 99, 9_900]);
  });
});

describe('layout', () => {
  const placed = (flow: Record<string, FlowJob>) => {
    const laid = layout(nodesOf(flow));
    return { ...laid, at: (name: string) => [...laid.places].find(([node]) => node.name === name)?.[1].across };
  };

  test('keeps jobs near those before them', () => {
    const { at, across } = placed({ a: job(), b: job(), ofB: job(['b']), ofA: job(['a']) });
    expect([at('ofA'), at('ofB'), across]).toEqual([at('a'), at('b'), 2]);
  });

  test('puts a job in the middle behind those that it waits for', () => {
    const { at, layers } = placed({ a: job(), b: job(), c: job(), all: job(['a', 'b', 'c']) });
    expect([at('all'), layers]).toEqual([at('b'), 2]);
  });

  test('leads a line past the nodes between its ends', () => {
    const { ways, at } = placed({ list: job(), validate: job(['list']), each: job(['validate', 'list']) });
    const [passing] = ways.find(({ edge }) => edge.from.name === 'list' && edge.to.name === 'each')?.through ?? [];
    expect(passing?.layer).toBe(1);
    expect(Math.abs((passing?.across ?? 0) - (at('validate') ?? 0))).toBeGreaterThan(0.6);
  });

  test('has no two nodes in one place', () => {
    const flow: Record<string, FlowJob> = {};
    for (let i = 0; i < 60; i++) {
      flow[`j${i}`] = job(i < 5 ? [] : [`j${(i * 7) % 5}`, `j${i - 5}`], { jobType: `T${i}` });
    }
    const { places } = layout(nodesOf(flow));
    const all = [...places.values()];
    for (const [i, a] of all.entries()) {
      expect(all.slice(i + 1).filter((b) => a.layer === b.layer && Math.abs(a.across - b.across) < 0.999)).toEqual([]);
    }
  });

  test('of no job is empty', () => {
    expect(layout(nodesOf({}))).toMatchObject({ layers: 0, ways: [] });
  });
});
