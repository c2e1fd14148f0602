import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { isObject, parse } from '../../api/json';
import { curlOf, quote, requestOf } from './curl';
import type { Job } from './queries';

const job = {
  jobType: 'EMAIL',
  payload: { subject: "it's here" },
  queue: 'default',
  priority: 0,
  maxRetryCount: 3,
  tags: [],
  orderingKey: null,
  after: [],
  callbackUrl: null,
} as unknown as Job;

const now = new Date('2026-11-23T08:00:00Z');

it('leaves out what has its default', () => {
  expect(requestOf(job, now)).toEqual({ jobType: 'EMAIL', payload: { subject: "it's here" }, maxRetryCount: 3 });
  expect(requestOf({ ...job, priority: 5, tags: ['a'] }, now)).toMatchObject({ priority: 5, tags: ['a'] });
});
it('leaves out what would find the job itself, and instants that have passed', () => {
  const past = '2026-11-23T07:59:59Z';
  expect(Object.keys(requestOf({ ...job, idempotencyKey: 'k', runAt: past, expiresAt: past }, now))).toEqual(['jobType', 'payload', 'maxRetryCount']);
});

// The samples of a gateway test, which holds that they name every member of the contract, and that a job shows them so.
const samples = parse(readFileSync(join(import.meta.dirname, '../../../../testdata/members.shown.json'), 'utf8')) as {
  request: Record<string, unknown>;
  job: Job;
}[];
const ELSE: Record<string, string> = { idempotencyKey: 'finds the job itself', jobId: 'finds the job itself', delayMs: 'is shown as runAt' };

it.each(samples)('has what the request of job %# asked for', ({ request, job: shown }) => {
  const made = requestOf(shown, now);
  for (const [name, value] of Object.entries(request).filter(([name]) => !(name in ELSE))) {
    // A shown policy has its defaults, too.
    expect(made[name], name).toEqual(isObject(value) && name !== 'payload' ? expect.objectContaining(value) : value);
  }
  expect('delayMs' in request ? made['runAt'] : null).toBe('delayMs' in request ? shown.runAt : null);
});
it('survives a shell', () => {
  expect(quote(`a'b$c"d`)).toBe(`'a'\\''b$c"d'`);
  expect(curlOf(job, 'http://localhost:8080', true)).toContain(`it'\\''s here`);
  expect(curlOf(job, 'http://localhost:8080', true)).toContain('Authorization');
  expect(curlOf(job, 'http://localhost:8080', false)).not.toContain('Authorization');
});
