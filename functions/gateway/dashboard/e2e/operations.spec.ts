import { accessible, call, expect, simulation, test } from './fixtures';
import type { Key } from './installation';

const job = simulation({ type: 'LOG', message: 'x' });

test('an operation shows what it skipped, and why', async ({ page, open, api }) => {
  const { jobId } = await api<{ jobId: string }>('POST', '/api/jobs?wait=30s', { ...job, tags: ['left-out'] });
  const made = await api<{ operationId: string }>('POST', '/api/operations', { command: 'cancel', jobIds: [jobId] });
  await open(`/operations/${made.operationId}`);
  await expect(page.getByText('completed', { exact: true })).toBeVisible();
  await page.getByText('The jobs', { exact: true }).click();
  await expect(page.getByRole('link', { name: jobId })).toBeVisible();
  await accessible(page);
  await page.getByRole('link', { name: 'All operations' }).click();
  await expect(page.getByRole('row').filter({ has: page.locator(`a[href="/operations/${made.operationId}"]`) }).getByText('1 of 1').first()).toBeVisible();
});

test('an operation that has ended cannot be aborted', async ({ page, site, open, api }) => {
  const made = await api<{ operationId: string }>('POST', '/api/operations', { command: 'cancel', filter: { tag: 'no-job-has-it' } });
  await api('GET', `/api/operations/${made.operationId}?wait=30s`);
  await open(`/operations/${made.operationId}`, site.operator.key);
  await expect(page.getByText('completed', { exact: true })).toBeVisible();
  await expect(page.getByRole('button', { name: 'Abort' })).toHaveCount(0);
});

test('an operation that runs is aborted', async ({ page, site, open, unique }) => {
  // its own owner, so that its many jobs are on no page of another test
  const { key } = await call<Key>(site.url, 'POST', '/api/keys', { name: unique, ownerId: unique, roles: ['operate'] }, site.admin);
  const ask = <T>(method: string, path: string, body?: object) => call<T>(site.url, method, path, body, key);
  const jobs = Array.from({ length: 1000 }, () => ({ ...job, delayMs: 3_600_000 }));
  for (let i = 0; i < 20; i++) {
    await ask('POST', '/api/jobs/batch', { jobs });
  }
  await open('/operations', key);
  await expect(page.getByText('No operation yet')).toBeVisible();
  const made = await ask<{ operationId: string }>('POST', '/api/operations', { command: 'reschedule', delayMs: 7_200_000, filter: { all: true } });
  await page.goto(`/operations/${made.operationId}`);
  await page.getByRole('button', { name: /^Abort reschedule/ }).click();
  await expect(page.getByText('The operation reaches no more jobs')).toBeVisible();
  const end = await ask<{ status: string; progress: { matched: number } }>('GET', `/api/operations/${made.operationId}?wait=30s`);
  expect(end.status).toBe('ABORTED');
  expect(end.progress.matched).toBeLessThan(20_000);
  await expect(page.getByText('aborted', { exact: true })).toBeVisible();
});
