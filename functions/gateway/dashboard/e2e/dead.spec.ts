import { accessible, expect, simulation, test } from './fixtures';

interface Job {
  jobId: string;
  status: string;
}

test('dead letters are redriven one by one and as a group, and a group without an error code', async ({ page, open, api, site, unique }) => {
  const code = unique.toUpperCase();
  const broken = { ...simulation({ type: 'FAIL', errorCode: code, retryable: false, failAttempts: 1 }), tags: [unique] }; // succeeds the second time
  const made = await Promise.all([1, 2, 3, 4].map(() => api<Job>('POST', '/api/jobs?wait=30s', broken)));
  const states = async () => (await api<{ jobs: Job[] }>('GET', `/api/jobs?tag=${unique}`)).jobs.map(({ status }) => status).sort();
  expect(await states()).toEqual(['FAILED', 'FAILED', 'FAILED', 'FAILED']);
  const group = page.getByRole('main').locator('section').filter({ hasText: code });
  const dialog = page.getByRole('dialog');

  await open('/dead', site.operator.key);
  await group.getByRole('link', { name: made.at(-1)?.jobId ?? '' }).or(group.locator('a.mono')).first().click();
  await page.getByRole('button', { name: 'Retry', exact: true }).click();
  await expect.poll(states).toEqual(['COMPLETED', 'FAILED', 'FAILED', 'FAILED']);

  await page.goBack();
  await expect(group.getByRole('link', { name: '3 jobs' })).toBeVisible();
  await group.getByRole('button', { name: 'Redrive all' }).click();
  await expect(dialog.getByRole('heading', { name: 'Retry 3 jobs?' })).toBeVisible(); // counted before the question
  await accessible(page);
  await dialog.getByRole('button', { name: 'Retry 3 jobs' }).click();
  await expect(dialog.getByText('Carried out for 3 jobs.')).toBeVisible();
  await expect.poll(states).toEqual(['COMPLETED', 'COMPLETED', 'COMPLETED', 'COMPLETED']);
  await dialog.getByRole('button', { name: 'Close' }).last().click();
  await expect(group).toHaveCount(0);

  // No handler fails without a code, so the test puts such a job into two responses of the API.
  await api<Job>('POST', '/api/jobs?wait=30s', broken);
  type List = { jobs: { tags: string[]; lastError: unknown }[] };
  await page.route('**/api/jobs/dead?*', async (route) => {
    const answer = await route.fetch();
    const body = (await answer.json()) as List;
    body.jobs.filter(({ tags }) => tags.includes(unique)).forEach((job) => (job.lastError = null));
    await route.fulfill({ response: answer, json: body });
  });
  await page.route('**/api/jobs?*noErrorCode=true*', async (route) => {
    const answer = await route.fetch();
    const { jobs } = await api<List>('GET', `/api/jobs?tag=${unique}&status=FAILED`);
    await route.fulfill({ response: answer, json: { ...((await answer.json()) as List), jobs } });
  });
  await page.reload();
  await page.getByRole('main').locator('section').filter({ hasText: 'no error code' }).getByRole('button', { name: 'Redrive all' }).click();
  const asked = page.waitForRequest((request) => request.method() === 'POST' && request.url().endsWith('/api/operations'));
  await dialog.getByRole('button', { name: 'Retry 1 job' }).click();
  expect((await asked).postDataJSON()).toMatchObject({
    command: 'retry', filter: { status: ['FAILED'], type: 'SIMULATION', noErrorCode: true },
  });
  await expect(dialog.getByText('Carried out for 0 jobs.')).toBeVisible(); // the real job has a code
  expect(await states()).toEqual(['COMPLETED', 'COMPLETED', 'COMPLETED', 'COMPLETED', 'FAILED']);
});
