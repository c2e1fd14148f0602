import { accessible, answered, call, expect, simulation, test } from './fixtures';
import type { Key } from './installation';

test('an owner limits and pauses its own jobs, and takes it back', async ({ page, site, open, faults, unique }) => {
  const { key } = await call<Key>(site.url, 'POST', '/api/keys', { name: unique, ownerId: unique, roles: ['admin'] }, site.admin);
  const control = () => call<{ paused: boolean; maxRunning: number | null }>(site.url, 'GET', `/api/controls/owner/${unique}`, undefined, key);
  await open('/controls', key);
  await page.getByRole('button', { name: 'New limit or pause' }).click();
  const form = page.getByRole('dialog');
  await form.getByLabel('Run at once, at most').fill('many');
  await form.getByRole('button', { name: 'Save' }).click();
  await expect(form.getByText('must be a number')).toBeVisible();
  await form.getByLabel('Run at once, at most').fill('2000000');
  await form.getByRole('button', { name: 'Save' }).click();
  await expect(form.getByLabel('Run at once, at most')).toHaveAttribute('aria-invalid', 'true');
  answered(faults, 400);
  await form.getByLabel('Run at once, at most').fill('7');
  await accessible(page);
  await form.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByRole('cell', { name: 'at most 7' })).toBeVisible();
  expect(await control()).toMatchObject({ paused: true, maxRunning: 7 });

  await page.getByRole('button', { name: `Resume the owner ${unique}` }).click();
  await expect(page.getByText('start again')).toBeVisible();
  expect(await control()).toMatchObject({ paused: false, maxRunning: 7 });
  await page.getByRole('button', { name: 'Undo' }).click();
  await expect(page.getByText(`No more jobs of the owner ${unique} start`)).toBeVisible();
  expect(await control()).toMatchObject({ paused: true, maxRunning: 7 });

  await page.getByRole('button', { name: `Remove all limits of the owner ${unique}` }).click();
  await expect(page.getByText(`All limits of the owner ${unique} are removed.`)).toBeVisible();
  expect(await control()).toMatchObject({ paused: false, maxRunning: null });
});

test('an admin of the installation limits a job type', async ({ page, site, open, api, unique }) => {
  const type = unique.toUpperCase();
  await open('/controls', site.admin);
  await page.getByRole('button', { name: 'New limit or pause' }).click();
  const form = page.getByRole('dialog');
  await form.getByLabel('Of').selectOption('type');
  await form.getByLabel('Name').fill(type);
  await form.getByLabel('Paused').uncheck();
  await form.getByLabel('Starts a second, at most').fill('0,5');
  await form.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByText(`The limits of the job type ${type} are set.`)).toBeVisible();
  expect(await api('GET', `/api/controls/type/${type}`, undefined, site.admin)).toMatchObject({ startsPerSecond: 0.5, paused: false });
  await page.getByRole('button', { name: `Remove all limits of the job type ${type}` }).click();
  await expect(page.getByText(`All limits of the job type ${type} are removed.`)).toBeVisible();
});

test('an admin of the installation sees the share of a fairness key, and sets its weight', async ({ page, site, open, api, unique }) => {
  await api('PUT', `/api/controls/fairnessKey/${unique}`, { paused: true }, site.admin);
  const job = { ...simulation({ type: 'LOG', message: 'waits' }), fairnessKey: unique };
  await api('POST', '/api/jobs/batch', { jobs: [job, job, job] }, site.admin);
  await open('/controls', site.admin);
  await page.getByLabel('Find a fairness key').fill(unique.toUpperCase());
  const row = page.getByRole('region', { name: 'Fairness keys' }).getByRole('row').filter({ hasText: unique });
  await expect(row).toContainText('paused');
  await expect(row.getByRole('cell').nth(2)).toHaveText('3');
  await expect(row.getByRole('progressbar', { name: `Share of the next starts of ${unique}` })).toHaveAttribute('value', '0');
  await page.getByRole('button', { name: `Set the weight of ${unique}` }).click();
  const form = page.getByRole('dialog');
  await form.getByLabel('Weight').fill('40');
  await form.getByLabel('Paused').uncheck();
  await form.getByLabel('Starts a second, at most').fill('0.001');
  await form.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByText(`The limits of the fairness key ${unique} are set.`)).toBeVisible();
  await expect(row).toContainText('at most 0.001/s');
  await expect(row.getByRole('cell').nth(1)).toHaveText('40');
  await expect(row.getByRole('progressbar', { name: `Share of the next starts of ${unique}` })).not.toHaveAttribute('value', '0');
  await page.getByLabel('Find a fairness key').fill('none has this name');
  await expect(page.getByText('No key contains “none has this name”.')).toBeVisible();
});

test('an owner sees its own jobs in a queue, and no shares', async ({ page, site, open, unique }) => {
  const { key } = await call<Key>(site.url, 'POST', '/api/keys', { name: unique, ownerId: unique, roles: ['admin'] }, site.admin);
  await open('/controls', key);
  await expect(page.getByText('No job waits or runs in the queue default.')).toBeVisible();
  await call(site.url, 'POST', `/api/controls/owner/${unique}/pause`, undefined, key);
  await call(site.url, 'POST', '/api/jobs', simulation({ type: 'LOG', message: 'waits' }), key);
  await page.reload();
  await expect(page.getByText('1 fairness key in the queue default: 1 waiting and 0 running jobs.')).toBeVisible();
  await expect(page.getByRole('columnheader', { name: 'Waiting' })).toBeVisible();
  await expect(page.getByRole('columnheader', { name: /Share/ })).toHaveCount(0);
});
