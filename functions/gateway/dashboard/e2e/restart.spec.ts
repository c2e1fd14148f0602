import { expect, test as base } from '@playwright/test';
import { Installation } from './installation';

// Its own installation: the other tests must not lose theirs.
const test = base.extend<object, { own: Installation }>({
  own: [
    async ({}, use) => {
      const own = await Installation.start();
      await use(own);
      await own.remove();
    },
    { scope: 'worker' },
  ],
});

test('a page shows that the gateway does not answer, and continues when it is back', async ({ page, own }) => {
  test.setTimeout(120_000);
  const uncaught: string[] = [];
  page.on('pageerror', (error) => uncaught.push(error.message));
  const job = (tag: string) => ({ jobType: 'SIMULATION', payload: { steps: [{ type: 'LOG', message: 'x' }] }, tags: [tag] });
  await own.call('POST', '/api/jobs?wait=30s', job('before'));
  await page.addInitScript((key) => sessionStorage.setItem('jobweaver.key', key), own.admin);
  await page.goto(`${own.url}/workers`);
  await expect(page.getByText('2 live workers')).toBeVisible();
  await expect(page.getByRole('button', { name: /^Live/ })).toBeVisible();

  await own.stop();
  await expect(page.getByRole('button', { name: /^No answer/ })).toBeVisible({ timeout: 30_000 });
  await expect(page.getByText('Last heartbeat').first()).toBeVisible(); // the data stays

  await own.startAgain();
  await expect(page.getByRole('button', { name: /^Live/ })).toBeVisible({ timeout: 30_000 });
  await expect(page.getByText('2 live workers')).toBeVisible();
  await expect(page.getByRole('heading', { name: 'Log in' })).toHaveCount(0);
  await own.call('POST', '/api/jobs?wait=30s', job('after'));
  expect(uncaught).toEqual([]);
});
