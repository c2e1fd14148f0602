import { accessible, expect, simulation, test } from './fixtures';

interface Job {
  jobId: string;
  status: string;
}

test('the page of a queue shows what its pause holds, and resumes it', async ({ page, open, api, site, unique }) => {
  await api('PUT', `/api/queues/${unique}`, {}, site.admin);
  await api('POST', `/api/controls/queue/${unique}/pause`, undefined, site.admin);
  const job = { ...simulation({ type: 'LOG', message: 'hi' }), queue: unique };
  const { jobId } = await api<Job>('POST', '/api/jobs', job);
  await api<Job>('POST', '/api/jobs', job);
  await api<Job>('POST', '/api/jobs', { ...job, delayMs: 3_600_000 });

  await open(`/queues/${unique}`, site.acme.key);
  await expect(page.getByRole('heading', { name: unique, level: 1 })).toBeVisible();
  await expect(page.getByText('It holds 2 jobs')).toBeVisible();
  const waiting = page.getByRole('region', { name: 'Waiting jobs by reason' });
  await expect(waiting.getByRole('row').filter({ hasText: `The end of the pause of queue ${unique}` }).getByRole('link', { name: '2', exact: true })).toBeVisible();
  await expect(waiting.getByRole('row').filter({ hasText: 'they are due later' }).getByRole('link', { name: '1', exact: true })).toBeVisible();
  await expect(page.getByText(`is held by the pause of queue ${unique}`)).toBeVisible(); // the oldest job
  await expect(page.getByRole('button', { name: 'Resume' })).toHaveCount(0); // the pause is the installation's

  await open(`/queues/${unique}`, site.admin);
  await page.getByRole('button', { name: 'Resume' }).click();
  await expect(page.getByRole('button', { name: 'Pause', exact: true })).toBeVisible();
  await expect.poll(async () => (await api<Job>('GET', `/api/jobs/${jobId}?wait=10s`)).status).toBe('COMPLETED');
  await page.getByRole('button', { name: 'Limits' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Run at once, at most').fill('3');
  await accessible(page);
  await dialog.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByText('Limited: at most 3 run at once.')).toBeVisible();
});

test('the page of a job type shows its failures, its workers, and that there is no such type', async ({ page, open, api, site, unique }) => {
  const code = unique.toUpperCase();
  await api<Job>('POST', '/api/jobs?wait=30s', simulation({ type: 'FAIL', errorCode: code, retryable: false }));
  await open('/types/SIMULATION', site.acme.key);
  await expect(page.getByRole('region', { name: 'Live workers' })).toBeVisible();
  await expect(page.getByRole('link', { name: 'default', exact: true }).first()).toHaveAttribute('href', '/queues/default');
  await page.goto(`/types/NO_${code}`);
  await expect(page.getByText(`There is no job type NO_${code}`)).toBeVisible();
});
