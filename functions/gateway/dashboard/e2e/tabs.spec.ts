import { answered, call, expect, test } from './fixtures';

test('of two tabs that edit one schedule the second is refused, and overwrites nothing', async ({ page, open, api, faults, context, unique }) => {
  const job = { jobType: 'SIMULATION', payload: { steps: [{ type: 'LOG', message: 'hi' }] } };
  await api('POST', '/api/schedules', { name: unique, cron: '@daily', job });
  await open(`/schedules/${unique}`);
  const popup = context.waitForEvent('page');
  await page.evaluate(() => window.open(location.href)); // a tab that a page opens has its session
  const other = await popup;

  for (const tab of [page, other]) {
    await tab.getByRole('button', { name: 'Edit' }).click();
  }
  await other.getByLabel('Cron').fill('@hourly');
  await other.getByRole('button', { name: 'Save' }).click();
  await expect(other.getByRole('dialog')).toHaveCount(0);

  await page.getByLabel('Cron').fill('@weekly');
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByRole('dialog').getByText('the schedule has changed since it was read')).toBeVisible();
  answered(faults, 412);
  expect(await api('GET', `/api/schedules/${unique}`)).toMatchObject({ cron: '@hourly' });

  await page.getByRole('button', { name: 'Close without saving' }).click();
  await expect(page.getByText('@hourly', { exact: true })).toBeVisible(); // a refusal makes the page read again
  await page.getByRole('button', { name: 'Edit' }).click();
  await expect(page.getByLabel('Cron')).toHaveValue('@hourly');
  await page.getByLabel('Cron').fill('@weekly');
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByRole('dialog')).toHaveCount(0);
  expect(await api('GET', `/api/schedules/${unique}`)).toMatchObject({ cron: '@weekly' });
});

test('of two tabs that edit the limits of one job type the second is refused, and overwrites nothing', async ({ page, site, open, faults, context, unique }) => {
  const type = unique.toUpperCase();
  const path = `/api/controls/type/${type}`;
  await call(site.url, 'PUT', path, { maxRunning: 3 }, site.admin);
  await open('/controls', site.admin);
  const popup = context.waitForEvent('page');
  await page.evaluate(() => window.open(location.href));
  const other = await popup;

  for (const tab of [page, other]) {
    await tab.getByRole('button', { name: `Edit the limits of the job type ${type}` }).click();
  }
  await other.getByLabel('Starts a second, at most').fill('5');
  await other.getByRole('button', { name: 'Save' }).click();
  await expect(other.getByRole('dialog')).toHaveCount(0);

  await page.getByLabel('Run at once, at most').fill('9');
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByRole('dialog').getByText('the control has changed since it was read')).toBeVisible();
  answered(faults, 412);
  expect(await call(site.url, 'GET', path, undefined, site.admin)).toMatchObject({ maxRunning: 3, startsPerSecond: 5 });
  await call(site.url, 'DELETE', path, undefined, site.admin);
});

test('a user who logs out in one tab is logged out in all of them, and no other user is', async ({ page, open, context, site }) => {
  await open('/schedules');
  const popup = context.waitForEvent('page');
  await page.evaluate(() => window.open(location.href));
  const same = await popup;
  const other = await context.newPage();
  await other.addInitScript((key) => sessionStorage.setItem('jobweaver.key', key), site.operator.key);
  await other.goto('/schedules');
  for (const tab of [page, same, other]) {
    await expect(tab.getByRole('link', { name: 'nightly' })).toBeVisible();
  }
  await page.getByRole('button', { name: 'acme', exact: true }).click();
  await page.getByRole('button', { name: 'Log out' }).click();
  for (const tab of [page, same]) {
    await expect(tab.getByRole('heading', { name: 'Log in to JobWeaver' })).toBeVisible();
    expect(await tab.evaluate(() => sessionStorage.getItem('jobweaver.key'))).toBeNull();
  }
  await expect(other.getByRole('link', { name: 'nightly' })).toBeVisible();
});
