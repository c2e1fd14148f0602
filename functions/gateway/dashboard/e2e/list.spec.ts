import { accessible, expect, simulation, test } from './fixtures';

interface Page {
  jobs: { status: string }[];
}

test('jobs are selected and cancelled, a few of them and then everything that matches', async ({ page, open, api, site, unique }) => {
  const later = { ...simulation({ type: 'LOG', message: 'x' }), delayMs: 3_600_000, tags: [unique] };
  await api('POST', '/api/jobs/batch', { jobs: Array.from({ length: 60 }, () => later) }); // more than the list loads at first
  const cancelled = async () => (await api<Page>('GET', `/api/jobs?tag=${unique}&status=CANCELLED&limit=200`)).jobs.length;
  const bar = page.getByRole('region', { name: 'Selected jobs' });
  const dialog = page.getByRole('dialog');
  await open(`/jobs?tag=${unique}`, site.operator.key);
  const boxes = page.getByRole('checkbox', { name: /^Select the job/ });
  await boxes.nth(0).check();
  await boxes.nth(1).check();
  await expect(bar.getByText('2 jobs selected')).toBeVisible();
  await bar.getByRole('button', { name: 'Cancel' }).click();
  await expect(dialog.getByRole('heading', { name: 'Cancel 2 jobs?' })).toBeVisible();
  await dialog.getByRole('button', { name: 'Cancel 2 jobs' }).click();
  await expect(dialog.getByText('Carried out for 2 jobs.')).toBeVisible();
  expect(await cancelled()).toBe(2);
  await dialog.getByRole('button', { name: 'Close' }).last().click();

  await page.getByRole('checkbox', { name: 'Select all jobs that are shown' }).check();
  await bar.getByRole('button', { name: 'Select everything that matches' }).click();
  await bar.getByRole('button', { name: 'Cancel' }).click();
  await expect(dialog.getByRole('heading', { name: 'Cancel 58 jobs?' })).toBeVisible(); // including those that are not loaded, without the ended ones
  await accessible(page);
  await dialog.getByRole('button', { name: 'Leave them as they are' }).click();
  expect(await cancelled()).toBe(2);
  await bar.getByRole('button', { name: 'Cancel' }).click();
  await dialog.getByRole('button', { name: 'Cancel 58 jobs' }).click();
  await expect(dialog.getByText('Carried out for 58 jobs.')).toBeVisible();
  expect(await cancelled()).toBe(60);
});

test('a search finds jobs by their error, and a command goes to all of them, and only to them', async ({ page, open, api, site, unique, faults }) => {
  const failing = (message: string) => ({
    ...simulation({ type: 'FAIL', errorCode: `E${message.length}`, message, retryable: false, failAttempts: 1 }), tags: [unique],
  });
  const found = Array.from({ length: 55 }, () => failing(`Lost ${unique} at sea`)); // more than the list loads at first
  await api('POST', '/api/jobs/batch', { jobs: [...found, failing('something else')] });
  const count = async (query: string) => (await api<Page>('GET', `/api/jobs?tag=${unique}&${query}&limit=200`)).jobs.length;
  await expect.poll(() => count('status=FAILED')).toBe(56);
  const bar = page.getByRole('region', { name: 'Selected jobs' });
  const dialog = page.getByRole('dialog');
  await open(`/jobs?q=${encodeURIComponent(`lost ${unique}`)}`, site.operator.key);
  await expect(page.getByRole('checkbox', { name: /^Select the job/ }).first()).toBeVisible();
  await page.getByRole('checkbox', { name: 'Select all jobs that are shown' }).check();
  await bar.getByRole('button', { name: 'Select everything that matches' }).click();
  await bar.getByRole('button', { name: 'Retry' }).click();
  await expect(dialog.getByRole('heading', { name: 'Retry 55 jobs?' })).toBeVisible();
  await accessible(page);
  await dialog.getByRole('button', { name: 'Retry 55 jobs' }).click();
  await expect(dialog.getByText('Carried out for 55 jobs.')).toBeVisible();
  await expect.poll(() => count('status=COMPLETED')).toBe(55);
  expect(await count('status=FAILED')).toBe(1);
  await dialog.getByRole('link', { name: 'The operation' }).click();
  await expect(page.getByText(`q lost ${unique}`).first()).toBeVisible();
  expect(faults).toEqual([]);
});

test('filters are kept as a view, and the columns as chosen', async ({ page, open, api, unique }) => {
  await api('POST', '/api/jobs?wait=30s', { ...simulation({ type: 'LOG', message: 'x' }), tags: [unique] });
  const views = page.getByRole('button', { name: 'Views' });
  await open(`/jobs?tag=${unique}&status=COMPLETED`);
  await views.click();
  await page.getByLabel('Name of the view').fill(`Mine ${unique}`);
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('button', { name: 'All jobs' }).click();
  await expect(page).toHaveURL(/\/jobs$/);
  await views.click();
  await page.getByRole('button', { name: `Mine ${unique}`, exact: true }).click();
  await expect(page).toHaveURL(new RegExp(`status=COMPLETED&tag=${unique}$`));
  await views.click();
  await page.getByRole('button', { name: `Delete the view Mine ${unique}` }).click();
  await page.locator('.toast').filter({ hasText: 'is deleted' }).getByRole('button', { name: 'Undo' }).click();
  await views.click();
  await expect(page.getByRole('button', { name: `Mine ${unique}`, exact: true })).toBeVisible();
  await page.keyboard.press('Escape');

  const header = (name: string) => page.getByRole('columnheader', { name });
  await page.getByRole('button', { name: 'Columns' }).click();
  await page.getByRole('checkbox', { name: 'Queue' }).uncheck();
  await page.getByRole('checkbox', { name: 'Priority' }).check();
  await accessible(page);
  for (const again of [false, true]) {
    if (again) {
      await page.reload(); // the browser keeps them
    }
    await expect(header('Priority')).toBeVisible();
    await expect(header('Queue')).toHaveCount(0);
  }
});
