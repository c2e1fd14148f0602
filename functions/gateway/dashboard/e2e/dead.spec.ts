import { accessible, expect, simulation, test } from './fixtures';

interface Job {
  jobId: string;
  status: string;
}

const failing = (errorCode: string, tag: string) => ({ ...simulation({ type: 'FAIL', errorCode, retryable: false, failAttempts: 1 }), tags: [tag] }); // succeeds the second time

test('the dead letters of a group are redriven one by one, and together', async ({ page, open, api, site, unique }) => {
  const code = unique.toUpperCase();
  for (let i = 0; i < 4; i++) {
    await api<Job>('POST', '/api/jobs?wait=30s', failing(code, unique));
  }
  const states = async () => (await api<{ jobs: Job[] }>('GET', `/api/jobs?tag=${unique}`)).jobs.map(({ status }) => status).sort();
  expect(await states()).toEqual(['FAILED', 'FAILED', 'FAILED', 'FAILED']);
  const group = page.getByRole('row').filter({ hasText: code });
  const dialog = page.getByRole('dialog');

  await open(`/dead?errorCode=${code}`, site.operator.key);
  await expect(group.getByText('new', { exact: true })).toBeVisible();
  await expect(group.getByRole('img', { name: '4 failures in the last 24 hours, 0 in the 24 hours before' })).toBeVisible();
  await group.getByRole('link', { name: 'the FAIL step failed' }).click();
  await page.getByRole('button', { name: 'Retry', exact: true }).click();
  await expect.poll(states).toEqual(['COMPLETED', 'FAILED', 'FAILED', 'FAILED']);

  await page.goBack();
  await expect(group.getByRole('link', { name: `The 3 jobs of SIMULATION ${code}` })).toBeVisible();
  await group.getByRole('checkbox').check();
  await page.getByRole('region', { name: 'Selected groups' }).getByRole('button', { name: 'Redrive' }).click();
  await expect(dialog.getByRole('heading', { name: 'Redrive 3 jobs?' })).toBeVisible(); // counted before the question
  await accessible(page);
  await dialog.getByRole('button', { name: 'Redrive 3 jobs' }).click();
  await expect(dialog.getByText('Carried out for 3 jobs.')).toBeVisible();
  await expect.poll(states).toEqual(['COMPLETED', 'COMPLETED', 'COMPLETED', 'COMPLETED']);
  await dialog.getByRole('button', { name: 'Close' }).last().click();
  await expect(page.getByText('No dead letter matches')).toBeVisible();
});

test('several groups are deleted together, beside a group that is larger than all', async ({ page, open, api, site, unique }) => {
  const [first, second, noise] = ['A', 'B', 'NOISE'].map((end) => `${unique.toUpperCase()}.${end}`) as [string, string, string];
  const made = await Promise.all([first, first, second].map((code) => api<Job>('POST', '/api/jobs?wait=30s', failing(code, unique))));
  await Promise.all(Array.from({ length: 3 }, () => api('POST', '/api/jobs/batch', { jobs: Array.from({ length: 100 }, () => failing(noise, `${unique}-noise`)) })));
  await expect.poll(async () => (await api<{ jobs: number }>('GET', `/api/jobs/dead/groups?errorCode=${noise}`)).jobs, { timeout: 60_000 }).toBe(300);
  const dialog = page.getByRole('dialog');

  await open('/dead', site.operator.key);
  await expect(page.getByRole('link', { name: `The 300 jobs of SIMULATION ${noise}` })).toBeVisible();
  for (const code of [first, second]) {
    await page.getByRole('checkbox', { name: `Select SIMULATION ${code}` }).check();
  }
  await page.getByRole('region', { name: 'Selected groups' }).getByRole('button', { name: 'Delete' }).click();
  await expect(dialog.getByRole('heading', { name: 'Delete 3 jobs in 2 groups?' })).toBeVisible();
  await dialog.getByRole('button', { name: 'Delete 3 jobs' }).click();
  await expect(dialog.getByText('Carried out for 3 jobs.')).toBeVisible();
  await dialog.getByRole('button', { name: 'Close' }).last().click();
  await expect(page.getByRole('row').filter({ hasText: first })).toHaveCount(0);
  for (const { jobId } of made) {
    await expect.poll(async () => (await page.request.get(`/api/jobs/${jobId}`, { headers: { authorization: `Bearer ${site.operator.key}` } })).status()).toBe(404);
  }
});

test('a group without an error code is reached as one', async ({ page, open, api, site, unique }) => {
  const code = unique.toUpperCase();
  await api<Job>('POST', '/api/jobs?wait=30s', failing(code, unique));
  // No handler fails without a code, so the test takes it from the responses of the API.
  type Groups = { groups: { errorCode: string | null }[] };
  await page.route('**/api/jobs/dead/groups?*', async (route) => {
    const answer = await route.fetch();
    const body = (await answer.json()) as Groups;
    body.groups.filter(({ errorCode }) => errorCode === code).forEach((group) => (group.errorCode = null));
    await route.fulfill({ response: answer, json: body });
  });
  const dialog = page.getByRole('dialog');
  await open('/dead', site.operator.key);
  await page.getByRole('checkbox', { name: 'Select SIMULATION without an error code' }).check();
  await page.getByRole('region', { name: 'Selected groups' }).getByRole('button', { name: 'Redrive' }).click();
  const asked = page.waitForRequest((request) => request.method() === 'POST' && request.url().endsWith('/api/operations'));
  await dialog.getByRole('button', { name: 'Redrive 1 job' }).click();
  expect((await asked).postDataJSON()).toMatchObject({ command: 'retry', filter: { status: ['FAILED'], type: 'SIMULATION', noErrorCode: true } });
  await expect(dialog.getByText('Carried out for 0 jobs.')).toBeVisible(); // the real job has a code
});

test('a role that may only read sees the groups without commands', async ({ page, open, site }) => {
  await open('/dead', site.reader.key);
  await expect(page.getByRole('row').filter({ hasText: 'DEMO.BROKEN' })).toBeVisible();
  await expect(page.getByRole('checkbox')).toHaveCount(0);
});
