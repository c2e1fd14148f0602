import { expect, it } from 'vitest';
import { draft, subject, threshold, toRequest } from './form';
import type { Alert } from './queries';

const alert: Alert = {
  name: 'charges', ownerId: null, jobType: 'CHARGE', queue: null, errorCode: 'CARD', failures: 10, percent: 20, windowMinutes: 5, quietMinutes: 30,
  to: { slack: 'https://hooks.slack.com/…' }, paused: true, state: 'OK', firingSince: null, announcedAt: null, failed: 0, ended: 0,
  createdAt: '2026-11-29T12:00:00Z', updatedAt: '2026-11-29T12:00:00Z',
};

it('keeps all members of an alert that is edited and saved as it was', () => {
  const { name, jobType, queue, errorCode, failures, percent, windowMinutes, quietMinutes, to, paused } = alert;
  expect(toRequest(draft(alert))).toEqual({ name, jobType, queue, errorCode, failures, percent, windowMinutes, quietMinutes, to, paused });
  for (const other of [{ webhook: 'https://example.org/…' }, { email: ['ada@example.org', 'Bob <bob@example.org>'] }]) {
    expect(toRequest(draft({ ...alert, to: other })).to).toEqual(other);
  }
});

it('begins with the most usual alert', () => {
  expect(toRequest({ ...draft(), name: ' a ', to: ' https://hooks.slack.com/services/x ' })).toEqual({
    name: 'a', jobType: null, queue: null, errorCode: null, failures: 5, percent: null, windowMinutes: 5, quietMinutes: 60, paused: false,
    to: { slack: 'https://hooks.slack.com/services/x' },
  });
});

it('describes what an alert counts and when it fires', () => {
  expect(threshold(alert)).toBe('10 failures and 20 % within 5 minutes');
  expect(threshold({ failures: 1, percent: null, windowMinutes: 1 })).toBe('1 failure within 1 minute');
  expect(subject(alert)).toBe('CHARGE, code CARD');
  expect(subject({ jobType: null, queue: 'pay', errorCode: null })).toBe('queue pay');
  expect(subject({ jobType: null, queue: null, errorCode: null })).toBe('all jobs');
});
