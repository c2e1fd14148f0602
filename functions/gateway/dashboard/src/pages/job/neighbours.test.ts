import { expect, it } from 'vitest';
import type { Schemas } from '../../api/client';
import { nearest, nextOf } from './neighbours';

const jobs = (...ids: string[]) => ids.map((jobId) => ({ jobId }) as Schemas['JobSummary']);
const ids = (found: Schemas['JobSummary'][]) => found.map(({ jobId }) => jobId);
const createdAt = '2026-11-23T08:00:00.000Z';

it('takes the jobs that were accepted next, in their order', () => {
  expect(ids(nearest(jobs('f', 'e', 'd', 'c', 'b', 'a'), 'b'))).toEqual(['c', 'd', 'e']);
});

it('takes one page where that has all later jobs', async () => {
  const asked: object[] = [];
  const found = await nextOf({ jobId: 'b', createdAt }, (query) => {
    asked.push(query);
    return Promise.resolve({ jobs: jobs('d', 'c', 'b'), nextCursor: null });
  });
  expect(ids(found)).toEqual(['c', 'd']);
  expect(asked).toEqual([{ since: createdAt, limit: 200 }]);
});

it('looks in longer and longer spans where a page does not reach back to the job', async () => {
  const spans: string[] = [];
  const found = await nextOf({ jobId: 'b', createdAt }, ({ until, cursor }) => {
    if (until === undefined) {
      return Promise.resolve({ jobs: jobs('z'), nextCursor: 'z' });
    }
    spans.push(String(until));
    const short = until === '2026-11-23T08:00:01.000Z';
    const first = { jobs: jobs('f', 'e'), nextCursor: 'e' };
    return Promise.resolve(short ? { jobs: jobs('c', 'b'), nextCursor: null } : cursor === 'e' ? { jobs: jobs('d', 'c', 'b'), nextCursor: null } : first);
  });
  expect(ids(found)).toEqual(['c', 'd', 'e']);
  expect(spans).toEqual(['2026-11-23T08:00:01.000Z', '2026-11-23T08:01:00.000Z', '2026-11-23T08:01:00.000Z']);
});

it('takes what it has found where a longer span has too many', async () => {
  const found = await nextOf({ jobId: 'b', createdAt }, ({ until }) =>
    Promise.resolve(until === '2026-11-23T08:00:01.000Z' ? { jobs: jobs('c', 'b'), nextCursor: null } : { jobs: jobs('z'), nextCursor: 'z' }),
  );
  expect(ids(found)).toEqual(['c']);
});
