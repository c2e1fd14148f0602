import { expect, it } from 'vitest';
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

it('leaves out what has its default', () => {
  expect(requestOf(job)).toEqual({ jobType: 'EMAIL', payload: { subject: "it's here" } });
  expect(requestOf({ ...job, priority: 5, tags: ['a'] })).toMatchObject({ priority: 5, tags: ['a'] });
});
it('survives a shell', () => {
  expect(quote(`a'b$c"d`)).toBe(`'a'\\''b$c"d'`);
  expect(curlOf(job, 'http://localhost:8080')).toContain(`it'\\''s here`);
});
