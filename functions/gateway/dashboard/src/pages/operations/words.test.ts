import { expect, it } from 'vitest';
import { answered, ended, target } from './words';

it('names the jobs of a list by their number', () => {
  expect(target({ jobs: 1, filter: null })).toBe('1 job of a list');
  expect(target({ jobs: 2500, filter: null })).toBe('2,500 jobs of a list');
});
it('names the jobs of a filter by its conditions', () => {
  expect(target({ jobs: null, filter: { status: ['FAILED', 'CANCELLED'], queue: 'mail' } })).toBe(
    'jobs with status FAILED or CANCELLED, queue mail',
  );
  expect(target({ jobs: null, filter: { all: true } })).toBe('all jobs');
});
it('is done with what was applied, refused or skipped', () => {
  const progress = { matched: 10, asked: 7, applied: 4, refused: 1, skipped: 3, walked: false };
  expect(answered({ progress })).toEqual({ done: 8, of: 10 });
});
it('ends completed or aborted', () => {
  expect(ended({ status: 'ABORTING' })).toBe(false);
  expect(ended({ status: 'ABORTED' })).toBe(true);
});
