import { accessible, answered, call, expect, simulation, test } from './fixtures';

test('an admin of the installation creates a queue and removes it', async ({ page, site, open, api, faults, unique }) => {
  const name = unique.toLowerCase().replaceAll(/[^a-z0-9-]/g, '-');
  await open('/workers', site.admin);
  await page.getByRole('button', { name: 'New queue' }).click();
  const form = page.getByRole('dialog');
  await form.getByLabel('Name').fill('No_Queue');
  await form.getByRole('button', { name: 'Create' }).click();
  await expect(form.getByLabel('Name')).toHaveAttribute('aria-invalid', 'true');
  answered(faults, 400);
  await form.getByLabel('Name').fill(name);
  await accessible(page);
  await form.getByRole('button', { name: 'Create' }).click();
  await expect(page.getByText(`The queue ${name} takes jobs.`)).toBeVisible();
  const row = page.getByRole('row').filter({ hasText: name });
  await expect(row).toContainText('takes jobs');

  await api('POST', '/api/jobs', { ...simulation({ type: 'LOG', message: 'later' }), queue: name, delayMs: 3_600_000 }, site.admin);
  await page.getByRole('button', { name: `Remove the queue ${name}` }).press('Enter'); // its row moves when another test makes a queue
  await form.getByRole('button', { name: 'Remove it' }).click();
  await expect(form.getByText('1 job in it has not ended')).toBeVisible();
  answered(faults, 409);
  await form.getByLabel('Run the jobs that are in it first').check();
  await accessible(page);
  await form.getByRole('button', { name: 'Remove it' }).click();
  await expect(row).toContainText('is being removed');
  // The numbers are up to a second old.
  const shown = async () => call(site.url, 'GET', `/api/queues/${name}`, undefined, site.admin);
  await expect.poll(shown, { timeout: 20_000 }).toMatchObject({ state: 'REMOVING', waiting: 1 });
});

test('an owner sees the queues and changes none', async ({ page, site, open }) => {
  await open('/workers', site.acme.key);
  await expect(page.getByRole('table', { name: 'All queues' })).toContainText('default');
  await expect(page.getByRole('button', { name: 'New queue' })).toBeHidden();
});
