import { expect, it } from 'vitest';
import type { Schemas } from '../../api/client';
import { deploys, servingOf } from './serving';

const worker = (workerId: string, version: string, startedAt: string | null, change: Partial<Schemas['Worker']> = {}) =>
  ({ workerId, version, startedAt, live: true, queues: ['default'], jobTypes: ['MAIL'], ...change }) as Schemas['Worker'];

it('finds the live workers of a queue and of a job type', () => {
  const workers = [worker('b', '1', null), worker('a', '1', null), worker('gone', '1', null, { live: false }), worker('c', '1', null, { queues: ['other'], jobTypes: ['SMS'] })];
  expect(servingOf(workers, { kind: 'queue', name: 'default' }).map(({ workerId }) => workerId)).toEqual(['a', 'b']);
  expect(servingOf(workers, { kind: 'type', name: 'SMS' }).map(({ workerId }) => workerId)).toEqual(['c']);
});
it('dates a version by its first worker', () => {
  expect(deploys([worker('a', '2', '2026-11-29T11:00:05Z'), worker('b', '2', '2026-11-29T11:00:00Z'), worker('c', '1', '2026-11-20T08:00:00Z'), worker('d', '0', null)])).toEqual([
    { label: '1', at: '2026-11-20T08:00:00Z' }, { label: '2', at: '2026-11-29T11:00:00Z' },
  ]);
});
