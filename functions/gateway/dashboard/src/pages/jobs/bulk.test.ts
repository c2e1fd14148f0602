import { expect, it } from 'vitest';
import { narrowed, targetOf } from './bulk';
import { readFilters } from './filters';

const now = new Date('2026-11-23T08:00:00Z');

it('a command goes only to states that allow it', () => {
  expect(narrowed(readFilters({ tag: 'a' }), 'retry')?.status).toEqual(['FAILED', 'CANCELLED']);
  expect(narrowed(readFilters({ status: ['FAILED', 'COMPLETED'] }), 'retry')?.status).toEqual(['FAILED']);
  expect(narrowed(readFilters({ status: 'COMPLETED' }), 'cancel')).toBeNull();
});
it('no more jobs are asked than were counted', () => {
  expect(targetOf(readFilters({ since: '1h' }), now)).toEqual({ since: '2026-11-23T07:00:00.000Z', until: '2026-11-23T08:00:00.000Z' });
  expect(targetOf(readFilters({ until: '2026-11-23T07:00:00Z' }), now).until).toBe('2026-11-23T07:00:00.000Z');
});
