import { expect, it } from 'vitest';
import { draft, problemAt, toRequest } from './form';

it('leaves out the ends that are not given', () => {
  const made = toRequest({ ...draft(), name: ' nightly ', cron: '30 2 * * *', timeZone: 'UTC' });
  expect(made).toMatchObject({ body: { name: 'nightly', cron: '30 2 * * *', job: { jobType: 'SIMULATION' } } });
  expect(made).not.toHaveProperty('body.startAt');
  expect(made).not.toHaveProperty('body.endAt');
});
it('sends the instant that a local time means', () => {
  const made = toRequest({ ...draft(), startAt: '2026-11-24T02:30:00' });
  expect(made).toMatchObject({ body: { startAt: new Date('2026-11-24T02:30:00').toISOString() } });
});
it('shows what is not JSON', () => {
  expect(toRequest({ ...draft(), job: '{' })).toHaveProperty('error', expect.stringContaining('no JSON'));
});
it('keeps a problem at its field, with the place inside it', () => {
  const details = [
    { path: 'cron', message: 'has 4 fields' },
    { path: 'job.payload.steps', message: 'is required' },
    { path: 'jobs', message: 'is another' },
  ];
  expect(problemAt(details, 'cron')).toBe('has 4 fields');
  expect(problemAt(details, 'job')).toBe('payload.steps is required');
  expect(problemAt(details, 'name')).toBeUndefined();
});
