import { expect, it } from 'vitest';
import { failed, firstFailed, never, wayTo } from './failure';
import type { FlowJob } from './nodes';

const job = (jobId: string, status: FlowJob['status'], ...after: string[]): FlowJob => ({
  jobId, jobType: 'MAIL', status, after: after.map((name) => ({ name, jobId: name, on: 'completed' })),
});
const jobs = {
  list: job('1', 'COMPLETED'),
  charge: job('2', 'FAILED', 'list'),
  notify: job('3', 'CANCELLED', 'charge'),
  tax: job('4', 'FAILED', 'list'),
  late: job('5', 'FAILED', 'notify'),
};

it('begins with the jobs before which none has failed', () => {
  expect(failed({ jobs })).toEqual(['charge', 'tax']);
  expect(never(jobs)).toBe(1);
});
it('finds the one that failed first', () => {
  const known = new Map([['2', { finishedAt: '2026-11-29T10:00:02Z' }], ['4', { finishedAt: '2026-11-29T10:00:01Z' }]]);
  expect(firstFailed({ jobs }, known)).toBe('tax');
  expect(firstFailed({ jobs }, new Map())).toBe('charge');
  expect(firstFailed({ jobs: { list: job('1', 'COMPLETED') } }, new Map())).toBeNull();
});
it('follows the way to a job back to the start', () => {
  expect([...wayTo(jobs, 'notify')].sort()).toEqual(['charge', 'list', 'notify']);
  expect(wayTo(jobs, null).size).toBe(0);
});
