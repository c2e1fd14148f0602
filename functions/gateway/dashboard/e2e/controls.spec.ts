import { accessible, answered, call, expect, test } from './fixtures';
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
