import { expect, it } from 'vitest';
import { STATUSES } from '../../ui/StatusBadge';
import { allowed, changeable, losesWork } from './commands';

it('each command goes to the states that the API takes it for', () => {
  const states = (kind: Parameters<typeof allowed>[0]) => STATUSES.filter((status) => allowed(kind, status));
  expect(states('retry')).toEqual(['FAILED', 'CANCELLED']);
  expect(states('reschedule')).toEqual(['SCHEDULED', 'PENDING', 'RETRYING']);
  expect(states('delete')).toEqual(['COMPLETED', 'FAILED', 'CANCELLED']);
  expect(states('cancel')).toEqual(['SCHEDULED', 'PENDING', 'QUEUED', 'RUNNING', 'WAITING', 'RETRYING']);
});
it('only a cancel that loses work is asked for twice', () => {
  expect(STATUSES.filter(losesWork)).toEqual(['QUEUED', 'RUNNING', 'WAITING']);
});
it('a job changes only before its first attempt', () => {
  expect(STATUSES.filter((status) => changeable({ status, attempt: 0 }))).toEqual(['SCHEDULED', 'PENDING']);
  expect(changeable({ status: 'PENDING', attempt: 1 })).toBe(false);
});
