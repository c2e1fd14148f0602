import { expect, it } from 'vitest';
import type { Schemas } from '../../api/client';
import { needs, type Sources } from './triage';

const now = new Date('2026-11-29T12:00:00Z');
const jobs = (change: Partial<Schemas['JobCounts']> = {}): Schemas['JobCounts'] => ({
  SCHEDULED: 0, PENDING: 0, QUEUED: 0, RUNNING: 0, WAITING: 0, RETRYING: 0, COMPLETED: 0, FAILED: 0, CANCELLED: 0, ...change,
});
const none = { jobTypes: [], errorCodes: [] };
const flow = (at: string, completed: number) => ({ at, accepted: completed, completed, failed: 0, cancelled: 0 });

function stats(change: Partial<Schemas['Stats']> = {}): Schemas['Stats'] {
  return {
    at: now.toISOString(), jobs: jobs(), queues: [], types: [], oldestWaiting: null, failures: { '1h': none, '24h': none, '30d': none },
    throughput: { hours: [flow('2026-11-28T13:00:00Z', 0)], days: [flow('2026-11-20T00:00:00Z', 5)], minutes: [], perSecond: {} },
    ...change,
  } as unknown as Schemas['Stats'];
}

const group = (change: Partial<Schemas['DeadGroup']>): Schemas['DeadGroup'] => ({
  jobType: 'INVOICE', errorCode: 'CARD', jobs: 1, new: false, firstFailedAt: '2026-11-01T00:00:00Z', lastFailedAt: '2026-11-29T11:59:45Z',
  hours: Array.from({ length: 24 }, () => 0), dayBefore: 0, example: null, ...change,
});
const live = { live: true } as Schemas['Worker'];
const sentences = (sources: Partial<Sources>) => needs({ stats: stats(), ...sources }, now).map(({ subject, text }) => `${subject} ${text}`);

it('needs no person while all is well', () => {
  expect(sentences({ groups: [], workers: { workers: [live], withoutWorker: [] }, controls: [], topics: [] })).toEqual([]);
});
it('names the alerts that fire', () => {
  const alert = { name: 'charges', ownerId: 'acme', firingSince: '2026-11-29T11:31:00Z', failed: 12, ended: 40, windowMinutes: 5 } as Schemas['Alert'];
  const found = needs({ stats: stats(), firing: [alert] }, now);
  expect(found).toEqual([
    { subject: 'Alert charges of acme', text: 'fires: 12 of 40 jobs failed within 5 minutes, and it began 29 min ago', href: '/alerts/charges?ownerId=acme' },
  ]);
});
it('compares the failures of a type with the day before', () => {
  const hours = Array.from({ length: 24 }, (_, i) => (i < 2 ? 20 : 0));
  expect(sentences({ groups: [group({ hours, dayBefore: 7 }), group({ errorCode: 'OTHER', dayBefore: 3 })] })).toEqual([
    'INVOICE fails 4× as often as the day before: 40 failures in 24 hours',
  ]);
  expect(sentences({ groups: [group({ hours, dayBefore: 20 })] })).toEqual([]);
});
it('names a type of which most jobs fail, once', () => {
  const failures = { '1h': { jobTypes: [{ jobType: 'MAIL', failed: 8, ended: 10 }, { jobType: 'RARE', failed: 4, ended: 4 }], errorCodes: [] }, '24h': none, '30d': none };
  expect(sentences({ stats: stats({ failures }) })).toEqual(['MAIL fails: 8 of the 10 jobs that ended in the last hour']);
  const hours = Array.from({ length: 24 }, () => 1);
  expect(sentences({ stats: stats({ failures }), groups: [group({ jobType: 'MAIL', hours, dayBefore: 1 })] })).toHaveLength(1);
});
it('announces new errors, but not on the first day', () => {
  const groups = ['A', 'B', 'C', 'D', 'E'].map((errorCode, i) => group({ errorCode, new: true, lastFailedAt: `2026-11-29T11:5${i}:00Z` }));
  expect(sentences({ groups })).toEqual([
    'INVOICE fails with a new error, E: 1 job, the last 6 min ago', 'INVOICE fails with a new error, D: 1 job, the last 7 min ago',
    'INVOICE fails with a new error, C: 1 job, the last 8 min ago', '2 more errors did not occur before',
  ]);
  const first = stats();
  first.throughput.days = [flow('2026-11-29T00:00:00Z', 5)];
  expect(sentences({ stats: first, groups })).toEqual([]);
});
it('counts what a pause holds', () => {
  const control = { name: 'reports', kind: 'queue', paused: true, updatedAt: '2026-11-29T11:31:00Z' } as Schemas['Control'];
  const queues = [{ queue: 'reports', jobs: jobs({ PENDING: 126 }) }];
  expect(sentences({ stats: stats({ queues }), controls: [control] })).toEqual(['Queue reports is paused for at least 29 min and holds 126 jobs']);
  expect(sentences({ controls: [control] })).toEqual([]); // it holds nothing
  expect(sentences({ controls: [{ ...control, paused: false }] })).toEqual([]);
  expect(sentences({ controls: [{ ...control, kind: 'owner', name: 'acme' }] })).toEqual(['Owner acme is paused for at least 29 min']);
});
it('names the types without a worker, and an installation without one', () => {
  const withoutWorker = [{ jobType: 'LOST', queue: 'a', jobs: 1 }, { jobType: 'LOST', queue: 'b', jobs: 2 }];
  expect(sentences({ workers: { workers: [live], withoutWorker } })).toEqual(['LOST has no worker: 3 jobs are waiting']);
  expect(sentences({ stats: stats({ jobs: jobs({ PENDING: 1 }) }), workers: { workers: [], withoutWorker } })).toEqual(['No worker lives: 1 job is waiting']);
});
it('names a job that waits long though nothing blocks it', () => {
  const oldestWaiting = { jobId: 'x', createdAt: '2026-11-29T11:20:00Z', ageMs: 2_400_000 };
  const oldest = { jobType: 'MAIL', queue: 'mail', blockedBy: [] };
  expect(sentences({ stats: stats({ oldestWaiting }), oldest })).toEqual(['MAIL waits in the queue mail for 40 min, though nothing blocks it']);
  expect(sentences({ stats: stats({ oldestWaiting }), oldest: { ...oldest, blockedBy: [{ kind: 'pause', id: 'queue:mail' }] } })).toEqual([]);
  expect(sentences({ stats: stats({ oldestWaiting: { ...oldestWaiting, ageMs: 1000 } }), oldest })).toEqual([]);
});
it('names outages and functions that are behind first or last', () => {
  const health = { components: { db: { status: 'UP' }, kafka: { status: 'DOWN' } } } as Schemas['Health'];
  const topics = [
    { function: 'notify', topic: 'job-status', records: 2, members: 0 }, { function: 'projection', topic: 'job-status', records: 20_000, members: 2 },
    { function: 'outcome', topic: 'run-outcome', records: 14, members: 2 },
  ];
  expect(sentences({ health, topics })).toEqual([
    'The broker does not answer: jobs are accepted, and run when it is back', 'notify does not read job-status: 2 records wait',
    'projection is 20,000 records behind on job-status',
  ]);
});
