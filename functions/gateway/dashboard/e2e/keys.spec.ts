import { accessible, answered, call, expect, test } from './fixtures';

test('a key is made and shown once, rotated, and revoked', async ({ page, site, open, faults, unique }) => {
  const works = (key: string) => call(site.url, 'GET', '/api/me', undefined, key).then(() => true, () => false);
  await open('/keys');
  await page.getByRole('button', { name: 'New key' }).click();
  const dialog = page.getByRole('dialog');
  await accessible(page);
  await dialog.getByLabel('Your API key').fill('jw_another');
  await dialog.getByRole('button', { name: 'Continue' }).click();
  await expect(dialog.getByText('It is not the key')).toBeVisible();
  await dialog.getByLabel('Your API key').fill(site.acme.key);
  await dialog.getByRole('button', { name: 'Continue' }).click();
  await dialog.getByRole('button', { name: 'Make the key' }).click();
  await expect(dialog.getByLabel('Name')).toHaveAttribute('aria-invalid', 'true');
  answered(faults, 400);
  await dialog.getByLabel('Name').fill(unique);
  await dialog.getByLabel('submit').check();
  await accessible(page);
  await dialog.getByRole('button', { name: 'Make the key' }).click();
  const first = await dialog.getByLabel('the API key', { exact: true }).innerText();
  expect(await works(first)).toBe(true);
  await dialog.getByRole('button', { name: 'I have stored it' }).click();
  expect(await page.content()).not.toContain(first);
  await expect(page.getByRole('row', { name: new RegExp(unique) })).toContainText('read, submit');

  await page.getByRole('button', { name: `Rotate ${unique}` }).click();
  await dialog.getByLabel('The old key ends').selectOption('at once');
  await dialog.getByRole('button', { name: 'Rotate' }).click();
  const second = await dialog.getByLabel('the API key', { exact: true }).innerText();
  expect(second).not.toBe(first);
  expect(await works(second)).toBe(true);
  expect(await works(first)).toBe(false);
  await dialog.getByRole('button', { name: 'I have stored it' }).click();
  await expect(page.getByRole('row', { name: new RegExp(unique) }).filter({ hasText: 'expired' })).toBeVisible();

  await page.getByRole('button', { name: `Revoke ${unique}` }).click();
  await accessible(page);
  await dialog.getByRole('button', { name: 'Revoke' }).click();
  await expect(page.getByText(`${unique} is revoked`)).toBeVisible();
  expect(await works(second)).toBe(false);
});

test('the audit log shows the actor, and is filtered by its address', async ({ page, site, open, api, unique }) => {
  await api('POST', '/api/schedules', { name: unique, cron: '@daily', job: { jobType: 'INVOICE', payload: 1 } }, site.operator.key);
  await open('/audit');
  await page.getByLabel('Actor').fill(`key:${site.operator.keyId}`);
  await page.getByRole('button', { name: 'Filter' }).click();
  await expect(page).toHaveURL(/actor=key%3A/);
  await expect(page.getByText(`schedule/${unique}`)).toBeVisible();
  await expect(page.getByRole('cell', { name: 'key.create' })).toHaveCount(0);
  await page.getByRole('button', { name: 'Show all' }).click();
  await expect(page.getByText(`key:${site.acme.keyId}`).first()).toBeVisible();
  await expect(page).toHaveURL(/\/audit$/);
});
