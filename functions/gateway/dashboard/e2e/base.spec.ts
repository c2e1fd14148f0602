import { expect, test as base } from '@playwright/test';
import { watch } from './fixtures';
import { Installation } from './installation';

// Its own installation: PUBLIC_URL is the gateway's. Without a proxy the gateway itself serves the path.
const test = base.extend<object, { own: Installation }>({
  own: [
    async ({}, use) => {
      const own = await Installation.start({ PUBLIC_URL: 'https://example.org/tools/jobs' });
      await use(own);
      await own.remove();
    },
    { scope: 'worker' },
  ],
});

test('all pages, files and requests are below the path of the public URL', async ({ page, own }) => {
  test.setTimeout(120_000);
  const [faults, outside]: [string[], string[]] = [[], []];
  watch(page, faults);
  page.on('request', (request) => {
    if (!new URL(request.url()).pathname.startsWith('/tools/jobs/')) {
      outside.push(request.url());
    }
  });
  const job = { jobType: 'SIMULATION', payload: { steps: [{ type: 'LOG', message: 'x' }] } };
  const { jobId } = await own.call<{ jobId: string }>('POST', '/tools/jobs/api/jobs?wait=30s', job);
  await page.addInitScript((key) => sessionStorage.setItem('jobweaver.key', key), own.admin);
  const heading = (name: string) => page.getByRole('heading', { name, level: 1 });

  await page.goto(`${own.url}/tools/jobs/workers`);
  await expect(heading('Workers')).toBeVisible();
  await page.getByRole('link', { name: 'Schedules' }).click();
  await expect(heading('Schedules')).toBeVisible();
  await expect(page).toHaveURL(`${own.url}/tools/jobs/schedules`);
  await page.goBack();
  await expect(heading('Workers')).toBeVisible();
  await page.goto(`${own.url}/tools/jobs/jobs`);
  await page.locator(`a[href="/tools/jobs/jobs/${jobId}"]`).first().click();
  await expect(page).toHaveURL(`${own.url}/tools/jobs/jobs/${jobId}`);
  await page.reload();
  await expect(page.getByText('COMPLETED').first()).toBeVisible();
  await expect(page.getByRole('button', { name: /^Live/ })).toBeVisible(); // the stream is connected
  expect(outside).toEqual([]);
  expect(faults).toEqual([]);
});
