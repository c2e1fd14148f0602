import { accessible, expect, fits, simulation, test } from './fixtures';

interface Job {
  jobId: string;
  status: string;
  nextRunAt: string | null;
}

test('the filters of the list stand in its address', async ({ page, open, api, unique }) => {
  const later = await api<Job>('POST', '/api/jobs', { ...simulation({ type: 'LOG', message: 'x' }), delayMs: 3_600_000, tags: [unique] });
  await open(`/jobs?tag=${unique}`);
  await expect(page.getByRole('row').filter({ hasText: 'SIMULATION' })).toHaveCount(1);
  await page.locator(`a[href="/jobs/${later.jobId}"]`).first().click();
  await expect(page).toHaveURL(new RegExp(`/jobs/${later.jobId}`));
});

test('any span may stand in the address', async ({ page, open }) => {
  await open('/jobs?since=3h');
  await expect(page.getByRole('button', { name: 'Accepted: last 3h' })).toBeVisible();
  await expect(page.getByRole('row').filter({ hasText: 'SIMULATION' }).first()).toBeVisible();
});

test('a job that waits is rescheduled, cancelled, and retried', async ({ page, open, api, site }) => {
  const made = await api<Job>('POST', '/api/jobs', { ...simulation({ type: 'LOG', message: 'x' }), delayMs: 3_600_000 });
  const job = () => api<Job>('GET', `/api/jobs/${made.jobId}`);
  const actions = page.getByRole('main');
  await open(`/jobs/${made.jobId}`, site.operator.key);
  await accessible(page);
  await actions.getByRole('button', { name: /^Reschedule/ }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'In a day' }).click();
  await expect.poll(async () => Date.parse((await job()).nextRunAt ?? '') > Date.now() + 80_000_000).toBe(true);
  await actions.getByRole('button', { name: 'Cancel', exact: true }).click();
  await expect.poll(async () => (await job()).status).toBe('CANCELLED');
  await actions.getByRole('button', { name: 'Retry', exact: true }).click();
  await expect.poll(async () => (await job()).status).toBe('COMPLETED');
  await expect(actions.getByRole('button', { name: 'Run again' })).toBeVisible();
});

test('a job that failed shows why, and a reader is offered no action on it', async ({ page, open, api, site }) => {
  const failed = await api<Job>('POST', '/api/jobs?wait=30s', simulation({ type: 'FAIL', errorCode: 'DEMO.PAGE', retryable: false }));
  await open(`/jobs/${failed.jobId}`, site.reader.key);
  await expect(page.getByRole('main').getByText('DEMO.PAGE').first()).toBeVisible();
  for (const action of [/^Retry/, /^Cancel/, /^Delete/, /^Run again/]) {
    await expect(page.getByRole('main').getByRole('button', { name: action })).toHaveCount(0);
  }
  await page.emulateMedia({ colorScheme: 'dark' });
  await accessible(page);
  await page.setViewportSize({ width: 360, height: 740 });
  await fits(page);
});

test('a job of another owner is not there', async ({ page, open, api, site, faults }) => {
  const made = await api<Job>('POST', '/api/jobs?wait=30s', simulation({ type: 'LOG', message: 'x' }), site.other.key);
  await open(`/jobs/${made.jobId}`);
  await expect(page.getByText('there is no such job')).toBeVisible();
  expect(faults.splice(0).every((fault) => fault.includes('404'))).toBe(true);
});

test('a job is submitted by the form of its type', async ({ page, open, api, site }) => {
  await open('/new', site.operator.key);
  await page.getByLabel('Job type').selectOption('SIMULATION');
  const payload = page.getByRole('region', { name: 'As text' }).getByRole('textbox');
  await payload.fill(JSON.stringify({ steps: [{ type: 'LOG', message: 'by the form' }] }));
  await page.getByRole('button', { name: 'Submit the job' }).click();
  await expect(page).toHaveURL(/\/jobs\/[0-9a-f-]{36}$/);
  const jobId = new URL(page.url()).pathname.split('/').pop();
  expect((await api<Job>('GET', `/api/jobs/${jobId}?wait=30s`)).status).toBe('COMPLETED');
});
