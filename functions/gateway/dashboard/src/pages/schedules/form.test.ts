import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { parse } from '../../api/json';
import { draft, problemAt, toRequest } from './form';
import type { Schedule } from './queries';

// The samples of a gateway test, which holds that they name every member of the contract, and that a schedule shows them.
const { schedules, jobs } = parse(readFileSync(join(import.meta.dirname, '../../../../testdata/members.json'), 'utf8')) as Record<string, Record<string, unknown>[]>;

it.each(schedules ?? [])('keeps what it does not change', (sample) => {
  const shown = { ...sample, job: jobs?.[0] } as unknown as Schedule;
  expect(toRequest({ ...draft(shown), cron: '@daily' })).toEqual({ body: { ...shown, cron: '@daily' } });
  const ends = toRequest({ ...draft(shown), endAt: '2036-01-01T00:00:00' });
  expect(ends).toMatchObject({ body: { startAt: shown.startAt, endAt: new Date('2036-01-01T00:00:00').toISOString() } });
});

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
