import { accessible, call, expect, fits, test } from './fixtures';
import type { Key } from './installation';

test('the page of workers shows which pull worker runs what, and for how long', async ({ page, site, open, unique }) => {
  const { key } = await call<Key>(site.url, 'POST', '/api/keys', { name: unique, ownerId: unique, roles: ['admin', 'work'] }, site.admin);
  const worker = `eu-west-1a/${unique}-7f9c6d5b4-x2x9q`;
  const { jobId } = await call<{ jobId: string }>(
    site.url, 'POST', '/api/jobs', { jobType: 'INVOICE', queue: 'pull', payload: {}, tags: ['order:17'] }, key,
  );
  const { attempts } = await call<{ attempts: { token: string }[] }>(
    site.url, 'POST', '/api/workers/claim', { worker, types: ['INVOICE'], wait: '30s' }, key,
  );
  const token = attempts[0]?.token;
  await call(site.url, 'POST', '/api/workers/heartbeat', { worker, attempts: [{ token, progress: { percent: 40, message: 'page 4' } }] }, key);
  await open('/workers', key);
  const row = page.getByRole('row').filter({ hasText: worker });
  for (const text of ['INVOICE', unique, 'order:17', '40 % page 4']) {
    await expect(row).toContainText(text);
  }
  for (const width of [390, 1440]) {
    await page.setViewportSize({ width, height: 900 });
    await fits(page);
    await accessible(page, String(width));
  }
  await row.getByRole('link', { name: 'INVOICE' }).click();
  await expect(page).toHaveURL(new RegExp(`/jobs/${jobId}$`));
  await expect(page.getByRole('row').filter({ hasText: worker })).toContainText('running');
  await call(site.url, 'POST', '/api/workers/settle', { worker, results: [{ token, status: 'COMPLETED' }] }, key);
  await expect(page.getByRole('row').filter({ hasText: worker })).toContainText('completed');
});
