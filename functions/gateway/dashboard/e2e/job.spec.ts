import { createServer } from 'node:http';
import { accessible, answered, call, expect, fits, simulation, test } from './fixtures';
import type { Key } from './installation';

interface Job {
  jobId: string;
  status: string;
  priority: number;
  tags: string[];
  traceId: string;
}

test('a job is changed while it waits, run again with changes, and deleted', async ({ page, open, api, faults, unique }) => {
  const made = await api<Job>('POST', '/api/jobs', { ...simulation({ type: 'LOG', message: 'x' }), delayMs: 3_600_000 });
  const job = (jobId = made.jobId) => api<Job>('GET', `/api/jobs/${jobId}`);
  const actions = page.getByRole('main');
  const dialog = page.getByRole('dialog');
  await open(`/jobs/${made.jobId}`);
  await actions.getByRole('button', { name: 'Change' }).click();
  await dialog.getByLabel('Changes').fill('{"priority": 70}');
  await dialog.getByRole('button', { name: 'Change the job' }).click();
  await expect(dialog.getByText('It cannot be changed like this')).toBeVisible();
  answered(faults, 400);
  await accessible(page);
  await dialog.getByLabel('Changes').fill('{"priority": 7}');
  await dialog.getByRole('button', { name: 'Change the job' }).click();
  await expect(dialog).toHaveCount(0);
  await expect.poll(async () => (await job()).priority).toBe(7);

  await actions.getByRole('button', { name: 'Run again' }).click();
  await dialog.getByLabel('Changes').fill(`{"tags": ["${unique}"]}`);
  await dialog.getByRole('button', { name: 'Run again with these changes' }).click();
  await expect(page).not.toHaveURL(new RegExp(made.jobId));
  const again = new URL(page.url()).pathname.split('/').pop() ?? '';
  await expect(actions.getByRole('link', { name: made.jobId })).toBeVisible(); // linked to the old one
  await expect.poll(async () => (await job(again)).status).toBe('COMPLETED');
  expect(await job(again)).toMatchObject({ priority: 7, tags: [unique] });

  await actions.getByRole('button', { name: 'Delete' }).click();
  await expect(dialog.getByText('This cannot be undone')).toBeVisible();
  await dialog.getByRole('button', { name: 'Keep it' }).click();
  await actions.getByRole('button', { name: 'Delete' }).click();
  const gone = () => expect.poll(() => job(again).then(() => 'there', () => 'gone')).toBe('gone');
  await page.route(`**/api/jobs/${again}`, async (route) => {
    const response = await route.fetch();
    await gone(); // the response comes after the job is deleted: meanwhile the page must not request it
    await route.fulfill({ response });
  });
  await dialog.getByRole('button', { name: 'Delete the job' }).click();
  await expect(page).toHaveURL(/\/jobs$/);
  await gone();
});

test('a delivery to a callback URL is repeated under its id', async ({ page, open, api }) => {
  const received: (string | undefined)[] = [];
  const receiver = createServer((request, response) => {
    received.push(request.headers['webhook-id']?.toString());
    request.resume().on('end', () => response.writeHead(received.length === 1 ? 410 : 204).end()); // a 410 ends the tries
  });
  await new Promise<void>((listening) => receiver.listen(0, '127.0.0.1', listening));
  const address = receiver.address();
  const callbackUrl = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/`;
  try {
    const made = await api<Job>('POST', '/api/jobs?wait=30s', { ...simulation({ type: 'LOG', message: 'x' }), callbackUrl });
    await expect.poll(() => received.length).toBe(1);
    await open(`/jobs/${made.jobId}`);
    await expect(page.getByRole('cell', { name: 'FAILED' })).toBeVisible();
    await page.getByRole('button', { name: 'Deliver again' }).click();
    await expect(page.getByRole('cell', { name: 'DELIVERED' })).toBeVisible();
    expect(received).toEqual([received[0], received[0]]);
    expect(received[0]).toBeTruthy();
  } finally {
    receiver.close();
  }
});

test('a job shows what it waits for, what waits for it, its ordering key, and its trace', async ({ page, open, api, unique }) => {
  const later = { ...simulation({ type: 'LOG', message: 'x' }), delayMs: 3_600_000 };
  const first = await api<Job>('POST', '/api/jobs', { ...later, orderingKey: unique });
  const middle = await api<Job>('POST', '/api/jobs', { ...later, orderingKey: unique, after: [first.jobId] });
  const last = await api<Job>('POST', '/api/jobs', { ...later, orderingKey: unique, after: [middle.jobId] });
  const link = ({ jobId }: Job) => page.locator(`a[href="/jobs/${jobId}"]`);
  await open(`/jobs/${middle.jobId}`);
  await expect(page.getByRole('list', { name: 'Runs after' }).locator(link(first))).toBeVisible();
  await expect(page.getByRole('list', { name: 'Run after this job' }).locator(link(last))).toBeVisible();
  const neighbours = page.getByRole('region', { name: 'Ordering key' }).getByRole('listitem');
  await expect(neighbours).toHaveCount(3);
  await expect(neighbours.nth(0).locator(link(first))).toBeVisible();
  await expect(neighbours.nth(1)).toContainText('This job');
  await expect(neighbours.nth(2).locator(link(last))).toBeVisible();
  const { traceId } = await api<Job>('GET', `/api/jobs/${middle.jobId}`);
  const trace = page.getByRole('link', { name: 'Open the trace' });
  await expect(trace).toHaveAttribute('href', `https://traces.example.org/${traceId.replaceAll('-', '')}`);
  await expect(trace).toHaveAttribute('rel', /noopener/);
  await accessible(page);
  await page.getByRole('link', { name: 'All jobs after this one' }).click();
  await expect(page).toHaveURL(new RegExp(`/jobs\\?after=${middle.jobId}$`));
  await expect(page.getByRole('row').locator(`a[href="/jobs/${last.jobId}"]`).first()).toBeVisible();
  await expect(page.getByRole('checkbox', { name: /^Select the job/ })).toHaveCount(1);
});

test('older lines of a log are read page by page', async ({ page, open, api }) => {
  const made = await api<Job>('POST', '/api/jobs?wait=30s', simulation({ type: 'LOG', message: 'the newest line' }));
  const line = (text: string) => ({ attempt: 1, at: '2026-11-23T08:00:00Z', level: 'INFO', text });
  await page.route(`**/api/jobs/${made.jobId}/logs**`, async (route) => {
    const cursor = new URL(route.request().url()).searchParams.get('cursor');
    const answer = await route.fetch();
    if (cursor === null) {
      return route.fulfill({ json: { ...(await answer.json()), nextCursor: '1.200' } }); // as of a log above 1 MiB
    }
    return route.fulfill({ json: { jobId: made.jobId, logs: [line(`before ${cursor}`)], nextCursor: cursor === '1.200' ? '1.100' : null } });
  });
  await open(`/jobs/${made.jobId}`);
  await page.getByText('Log', { exact: true }).click();
  const lines = page.getByRole('list', { name: 'Log lines' }).getByRole('listitem');
  await expect(lines).toHaveCount(1);
  const older = page.getByRole('button', { name: 'Show older lines' });
  await older.click();
  await expect(lines).toHaveCount(2);
  await older.click();
  await expect(lines).toHaveText([/before 1\.100/, /before 1\.200/, /the newest line/]);
  await expect(older).toHaveCount(0);
});

test('two attempts are compared: their errors, workers and last log lines', async ({ page, site, open, unique }) => {
  const { key } = await call<Key>(site.url, 'POST', '/api/keys', { name: unique, ownerId: unique, roles: ['admin', 'work'] }, site.admin);
  const { jobId } = await call<Job>(site.url, 'POST', '/api/jobs', { jobType: 'INVOICE', queue: 'pull', payload: {}, maxRetryCount: 1 }, key);
  const fail = async (worker: string, errorCode: string, message: string, lines: string[]) => {
    const { attempts } = await call<{ attempts: { token: string }[] }>(
      site.url, 'POST', '/api/workers/claim', { worker, types: ['INVOICE'], wait: '30s' }, key,
    );
    const token = attempts[0]?.token;
    const log = lines.map((text) => ({ level: 'info', text }));
    await call(site.url, 'POST', '/api/workers/heartbeat', { worker, attempts: [{ token, log }] }, key);
    const results = [{ token, status: 'FAILED', errorCode, message, retryAfterMs: 1 }];
    await call(site.url, 'POST', '/api/workers/settle', { worker, results }, key);
  };
  await fail('resizer-1', 'CRM.TIMEOUT', 'timeout after 30 s calling /v2/contacts', ['POST /v2/contacts', 'no answer']);
  await fail('build-agent-ß', 'CRM.REFUSED', '403 Forbidden from /v2/contacts', ['POST /v2/contacts', 'token expired']);
  await expect.poll(async () => (await call<Job>(site.url, 'GET', `/api/jobs/${jobId}`, undefined, key)).status).toBe('FAILED');

  await open(`/jobs/${jobId}`, key);
  const rows = page.getByRole('region', { name: 'Attempts, first one first' }).getByRole('row');
  await expect(rows.nth(1)).toContainText('CRM.TIMEOUT timeout after 30 s calling /v2/contacts');
  await expect(rows.nth(2)).toContainText('CRM.REFUSED');
  const year = String(new Date().getFullYear());
  await expect(rows.nth(1)).toContainText(year); // a date, not only a time of day
  await page.getByLabel('Compare attempt 1').check();
  await expect(page.getByText('Tick a second attempt')).toBeVisible();
  await page.getByLabel('Compare attempt 2').check();
  const compared = page.getByRole('group', { name: 'Attempts 1 and 2 compared' });
  await expect(compared.getByRole('listitem')).toHaveCount(4);
  const marked = compared.locator('mark');
  await expect(marked.filter({ hasText: 'CRM.TIMEOUT' })).toBeVisible();
  await expect(marked.filter({ hasText: '403 Forbidden' })).toBeVisible();
  await expect(marked.filter({ hasText: 'token expired' })).toBeVisible();
  await expect(marked.filter({ hasText: 'contacts' })).toHaveCount(0); // both have it
  await page.getByText('All moves between states').click();
  await expect(page.getByRole('row').filter({ hasText: 'failed, CRM.REFUSED' })).toContainText('its worker');
  for (const look of ['light', 'dark', 'phone']) {
    await page.emulateMedia({ colorScheme: look === 'dark' ? 'dark' : 'light' });
    await page.setViewportSize(look === 'phone' ? { width: 360, height: 740 } : { width: 1280, height: 900 });
    await fits(page);
    await accessible(page, look);
  }
});
