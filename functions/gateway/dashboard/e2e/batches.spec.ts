import { accessible, call, expect, fits, simulation, test } from './fixtures';
import type { Key } from './installation';

test('a batch shows its jobs by state and what follows, and is cancelled and retried', async ({ page, site, open, unique }) => {
  const { key } = await call<Key>(site.url, 'POST', '/api/keys', { name: unique, ownerId: unique, roles: ['admin'] }, site.admin);
  const ask = <T>(method: string, path: string, body?: object) => call<T>(site.url, method, path, body, key);
  const job = simulation({ type: 'LOG', message: 'x' });
  const { batchId } = await ask<{ batchId: string }>('POST', '/api/batches', { name: unique, onFailure: { ...job, tags: ['after'] } });
  const later = await ask<{ jobId: string }>('POST', '/api/jobs', { ...job, batchId, delayMs: 3_600_000 });
  await ask('POST', '/api/jobs?wait=30s', { ...job, batchId });

  await open(`/jobs/${later.jobId}`, key);
  await page.locator(`a[href="/batches/${batchId}"]`).first().click();
  await expect(page.getByRole('heading', { name: unique, level: 1 })).toBeVisible();
  await expect(page.locator('.page-header').getByText('OPEN')).toBeVisible();
  await expect(page.getByRole('row', { name: 'SCHEDULED' })).toContainText('1');
  await expect(page.getByText('50 % of 2 jobs')).toBeVisible();
  for (const look of ['light', 'dark', 'phone']) {
    await page.emulateMedia({ colorScheme: look === 'dark' ? 'dark' : 'light' });
    await page.setViewportSize(look === 'phone' ? { width: 360, height: 740 } : { width: 1280, height: 900 });
    await fits(page);
    await accessible(page, look);
    if (process.env['LOOK']) {
      await page.screenshot({ path: `${process.env['LOOK']}/Batch-${look}.png`, fullPage: true });
    }
  }
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.getByText('If some do not').click();
  await expect(page.getByRole('region', { name: 'The request: if some do not' })).toContainText('"after"');

  await page.getByRole('button', { name: 'Close' }).click();
  await expect(page.locator('.page-header').getByText('RUNNING')).toBeVisible();
  await page.getByRole('button', { name: 'Cancel', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel the jobs' }).click();
  await expect(page.locator('.page-header').getByText('CANCELLED')).toBeVisible();
  await expect(page.getByText('This job has followed:')).toBeVisible();
  await page.getByRole('row', { name: 'CANCELLED' }).getByRole('link', { name: '1' }).click();
  await expect(page.getByRole('link', { name: later.jobId.slice(-6) }).or(page.getByText(later.jobId.slice(-6))).first()).toBeVisible();
  await page.goBack();
  await page.getByRole('button', { name: 'Retry' }).click();
  await expect(page.getByText('100 % of 2 jobs')).toBeVisible();
  await expect(page.getByRole('row', { name: 'COMPLETED' })).toContainText('2');
  await expect(page.locator('.page-header').getByText('COMPLETED')).toBeVisible({ timeout: 20_000 }); // after the ends of its jobs
  await page.getByRole('link', { name: 'All batches' }).click();
  await expect(page.getByRole('row').filter({ hasText: unique })).toContainText('COMPLETED');
});

test('a batch that does not exist is reported, and an owner without batches sees what they are for', async ({ page, site, open, unique, faults }) => {
  const { key } = await call<Key>(site.url, 'POST', '/api/keys', { name: unique, ownerId: unique, roles: ['read'] }, site.admin);
  await open('/batches', key);
  await expect(page.getByText('No batch yet')).toBeVisible();
  await page.goto('/batches/01936f3e-5f3e-7cc0-8000-0123456789ab');
  await expect(page.getByRole('alert')).toBeVisible();
  expect(faults.splice(0).every((fault) => fault.includes('status of 404'))).toBe(true);
});

test('the form of a new job debounces', async ({ page, open, unique }) => {
  await open('/new');
  await page.getByText('More: unique, single, throttled and debounced jobs').click();
  await page.getByLabel('Debounce key').fill(unique);
  await page.getByLabel('Seconds without a request').fill('3600');
  await page.getByRole('button', { name: 'curl' }).click();
  await expect(page.getByText('"delayMs": 3600000')).toBeVisible();
  await accessible(page);
  await page.getByRole('button', { name: 'Submit the job' }).click();
  await expect(page.getByText('held: further requests with this key change the job')).toBeVisible();
});
