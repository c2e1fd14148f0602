import { describe, expect, it } from 'vitest';
import { compare, update, type Job } from './rows';

const job = (n: number, more: Partial<Job> = {}) =>
  ({
    jobId: `00000000-0000-7000-8000-00000000000${n}`,
    createdAt: `2026-11-23T08:00:0${n}Z`,
    updatedAt: `2026-11-23T08:00:0${n}Z`,
    version: 1,
    status: 'PENDING',
    ...more,
  }) as Job;

const ids = (jobs: readonly Job[]) => jobs.map((each) => Number(each.jobId.at(-1)));

describe('update', () => {
  it('shows the higher version, and never goes back', () => {
    const latest = new Map([
      [job(1).jobId, job(1, { version: 3, status: 'COMPLETED' })],
      [job(2).jobId, job(2, { version: 0, status: 'SCHEDULED' })],
    ]);
    const rows = update([job(2), job(1)], latest);
    expect(rows.map((row) => row.status)).toEqual(['PENDING', 'COMPLETED']);
  });
  it('takes progress, which has no version of its own', () => {
    const latest = new Map([[job(1).jobId, job(1, { updatedAt: '2026-11-23T08:00:09Z', progress: { percent: 40, message: null } })]]);
    expect(update([job(1)], latest)[0]?.progress?.percent).toBe(40);
  });
  it('moves no row', () => {
    const latest = new Map([[job(5).jobId, job(5, { version: 9 })]]);
    expect(ids(update([job(3), job(2), job(1)], latest))).toEqual([3, 2, 1]);
  });
});

describe('compare', () => {
  it('announces jobs above the first row', () => {
    const news = compare([job(3), job(2)], [job(5), job(4), job(3)], false);
    expect(ids(news.fresh)).toEqual([5, 4]);
    expect(news.gap).toBe(false);
  });
  it('shows that there are more new jobs than were requested', () => {
    expect(compare([job(1)], [job(5), job(4)], false).gap).toBe(true);
    expect(compare([job(1)], [job(5), job(4), job(1)], false).gap).toBe(false);
  });
  it('finds rows that left the filter, and none beyond the page that was asked for', () => {
    const news = compare([job(5), job(4), job(2), job(1)], [job(5), job(3)], false);
    expect([...news.left].map((id) => Number(id.at(-1)))).toEqual([4]);
    expect(ids(news.fresh)).toEqual([]);
  });
  it('knows that all rows have left where the list is empty now', () => {
    expect(compare([job(2), job(1)], [], true).left.size).toBe(2);
  });
  it('takes no row for one that has left because the page has only recent jobs', () => {
    const news = compare([job(2), job(1)], [job(3)], true, true);
    expect(news.left.size).toBe(0);
    expect(ids(news.fresh)).toEqual([3]);
    expect(news.gap).toBe(false);
  });
  it('announces the first jobs of an empty list', () => {
    expect(ids(compare([], [job(2), job(1)], true).fresh)).toEqual([2, 1]);
    expect(compare([], [], true).fresh).toEqual([]);
  });
  it('orders jobs of one instant by their ids', () => {
    const at = '2026-11-23T08:00:00Z';
    const news = compare([job(3, { createdAt: at })], [job(4, { createdAt: at }), job(3, { createdAt: at })], true);
    expect(ids(news.fresh)).toEqual([4]);
  });
});
