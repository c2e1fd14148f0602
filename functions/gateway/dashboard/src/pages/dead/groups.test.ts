import { expect, it } from 'vitest';
import { historyOf, jobsOf, keyOf, targetOf, type Group } from './groups';

const group = (change: Partial<Group>) => ({ jobType: 'MAIL', errorCode: 'SMTP', hours: Array.from({ length: 24 }, (_, i) => i % 2), dayBefore: 3, ...change }) as Group;

it('reaches the jobs of a group, and none that is accepted later', () => {
  const now = new Date('2026-11-29T12:00:00Z');
  expect(targetOf(group({}), 'acme', now)).toEqual({
    status: ['FAILED'], type: 'MAIL', errorCode: 'SMTP', ownerId: 'acme', until: '2026-11-29T12:00:00.000Z',
  });
  expect(targetOf(group({ errorCode: null }), '', now)).toEqual({ status: ['FAILED'], type: 'MAIL', noErrorCode: true, until: '2026-11-29T12:00:00.000Z' });
});
it('links to the same jobs', () => {
  expect(jobsOf(group({}))).toEqual({ status: 'FAILED', type: 'MAIL', errorCode: 'SMTP' });
  expect(jobsOf(group({ errorCode: null }), 'acme')).toEqual({ status: 'FAILED', type: 'MAIL', noErrorCode: 'true', ownerId: 'acme' });
});
it('distinguishes a group without a code from others', () => {
  expect(keyOf(group({ errorCode: null }))).not.toBe(keyOf(group({})));
});
it('describes the last day and the one before', () => {
  expect(historyOf(group({}))).toBe('12 failures in the last 24 hours, 3 in the 24 hours before');
});
