import type { components } from '../src/api/schema.gen';
import { expect, simulation, test } from './fixtures';

type Stats = components['schemas']['Stats'];
type Job = components['schemas']['Job'];

test('a number of jobs that ended leads to the jobs that ended then, whenever they were accepted', async ({ page, open, api, site }) => {
  const owner = await api<{ key: string }>('POST', '/api/keys', { name: 'times', ownerId: 'times', roles: ['admin'] }, site.admin);
  const submit = (more: object) => api<Job>('POST', '/api/jobs', { ...simulation({ type: 'FAIL', errorCode: 'TIMES', retryable: false }), ...more }, owner.key);
  const before = await submit({ delayMs: 500 });
  const ended = ({ jobId }: { jobId: string }) => api<Job>('GET', `/api/jobs/${jobId}?wait=30s`, undefined, owner.key);
  const at = (instant: string | null) => Date.parse(instant ?? '');
  const late = await submit({ delayMs: 2000 }); // accepted before the window, and ended in it
  const begin = new Date(at((await ended(before)).finishedAt) + 1).toISOString();
  const { createdAt, finishedAt } = await ended(late);
  expect(at(createdAt)).toBeLessThan(at(begin));
  expect(at(begin)).toBeLessThan(at(finishedAt));
  await ended(await submit({}));

  // The statistics of a day that began at this instant.
  await page.route('**/api/stats', async (route) => {
    const stats = (await (await route.fetch()).json()) as Stats;
    stats.throughput.hours.forEach((hour, i) => (hour.at = i === 0 ? begin : hour.at));
    await route.fulfill({ json: stats });
  });
  const rows = page.getByRole('row').filter({ hasText: 'SIMULATION' });
  await open('/', owner.key);
  await page.getByRole('group', { name: 'Span of time' }).getByRole('button', { name: 'Day' }).click();
  await page.locator('.figures div').filter({ hasText: 'of what ended' }).getByRole('link').click();
  await expect(page).toHaveURL(/endedSince=/);
  await expect(page.getByRole('button', { name: 'Ended: from' })).toBeVisible();
  await expect(page.getByRole('button', { name: 'Accepted: at any time' })).toBeVisible();
  await expect(rows).toHaveCount(2);
  await expect(page.locator(`a[href="/jobs/${before.jobId}"]`)).toHaveCount(0);
});
