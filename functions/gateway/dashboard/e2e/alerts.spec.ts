import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { accessible, answered, expect, fits, simulation, test } from './fixtures';

interface Notice {
  state: string;
  alert: string;
  failed: number;
}

/** receiver is a webhook that keeps the notices that it gets. */
async function receiver() {
  const got: Notice[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (part: Buffer) => (body += part.toString()));
    request.on('end', () => {
      got.push(JSON.parse(body) as Notice);
      response.writeHead(204).end();
    });
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook/with-a-secret`, got, close: () => server.close() };
}

test('an alert is created, tested, fires at failures, is changed, paused and deleted', async ({ page, open, api, faults, unique }) => {
  test.setTimeout(180_000); // each look at an alert is 10 s after the last
  const { url, got, close } = await receiver();
  const errorCode = `DEMO.${unique}`;
  await open('/alerts');
  await page.getByRole('button', { name: 'New alert' }).click();
  const form = page.getByRole('dialog');
  await form.getByLabel('Name').fill('Not a name');
  await form.getByLabel('Error code').fill(errorCode);
  await form.getByLabel('Failures').fill('0');
  await form.getByLabel('Send notices to').selectOption('Webhook');
  await form.getByLabel('URL', { exact: true }).fill('ftp://example.org');
  await accessible(page);
  await form.getByRole('button', { name: 'Create alert' }).click();
  for (const field of ['Name', 'Failures', 'URL']) {
    await expect(form.getByLabel(field, { exact: true })).toHaveAttribute('aria-invalid', 'true');
  }
  answered(faults, 400);
  await form.getByLabel('Name').fill(unique);
  await form.getByLabel('Failures').fill('2');
  await form.getByLabel('URL', { exact: true }).fill(url);
  await form.getByRole('button', { name: 'Create alert' }).click();
  await expect(form).toHaveCount(0);

  await page.getByRole('link', { name: unique }).click();
  await expect(page.getByText('2 failures within 5 minutes')).toBeVisible();
  await expect(page.getByText(new URL(url).origin)).toBeVisible();
  await expect(page.getByText('with-a-secret')).toHaveCount(0);
  await page.getByRole('button', { name: 'Send a test' }).click();
  await expect.poll(() => got.map(({ state }) => state)).toEqual(['TEST']);
  await page.getByRole('region', { name: 'Notices' }).getByRole('link').click();
  await expect(page.getByRole('heading', { name: 'ALERT', level: 1 })).toBeVisible();
  await expect(page.getByText('with-a-secret')).toHaveCount(0);
  await page.goBack();

  const fails = simulation({ type: 'FAIL', errorCode, retryable: false });
  await Promise.all([1, 2].map(() => api('POST', '/api/jobs?wait=30s', fails)));
  await expect.poll(() => got.map(({ state }) => state), { timeout: 60_000 }).toEqual(['TEST', 'FIRING']);
  expect(got[1]).toMatchObject({ alert: unique, failed: 2 });
  await expect(page.getByText('firing').first()).toBeVisible({ timeout: 30_000 });
  for (const width of [1440, 1024, 390]) {
    await page.setViewportSize({ width, height: 900 });
    await fits(page);
    await accessible(page, `${width}`);
  }
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.goto('/');
  await page.getByRole('link', { name: new RegExp(`^Alert ${unique} of acme fires:`) }).click();

  await page.getByRole('button', { name: 'Edit' }).click();
  await expect(form.getByText('Its path is hidden.')).toBeVisible();
  await form.getByLabel('Failures').fill('3');
  await form.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByText('3 failures within 5 minutes')).toBeVisible();
  await expect.poll(() => got.map(({ state }) => state), { timeout: 60_000 }).toEqual(['TEST', 'FIRING', 'RESOLVED']); // the URL stayed

  await page.getByRole('button', { name: `Pause ${unique}` }).click();
  await expect(page.getByRole('button', { name: `Resume ${unique}` })).toBeVisible();
  await page.getByRole('button', { name: 'Delete' }).click();
  await expect(page.getByText(`${unique} is deleted`)).toBeVisible();
  await expect(page.getByRole('link', { name: unique })).toHaveCount(0);
  close();
});

test('a reader sees alerts, and may not change them', async ({ page, open, api, site, unique }) => {
  await api('POST', '/api/alerts', { name: unique, to: { email: ['ada@example.org'] }, paused: true });
  await open('/alerts', site.reader.key);
  await expect(page.getByRole('link', { name: unique })).toBeVisible();
  await expect(page.getByRole('button', { name: 'New alert' })).toHaveCount(0);
  await expect(page.getByRole('button', { name: /^Pause/ })).toHaveCount(0);
  await page.getByRole('link', { name: unique }).click();
  await expect(page.getByText('None was sent yet.')).toBeVisible();
  await expect(page.getByRole('button', { name: 'Edit' })).toHaveCount(0);
  await expect(page.getByRole('button', { name: 'Send a test' })).toHaveCount(0);
});

test('the page of a job type leads to an alert about it', async ({ page, open, site }) => {
  await open('/types/SIMULATION', site.operator.key);
  await page.getByRole('link', { name: 'Alert at its failures' }).click();
  const form = page.getByRole('dialog', { name: 'New alert' });
  await expect(form.getByLabel('Job type')).toHaveValue('SIMULATION');
  await form.getByRole('button', { name: 'Close without saving' }).click();
  await expect(page).toHaveURL(`${site.url}/alerts`);
  await expect(page.getByRole('heading', { name: 'Alerts', level: 1 })).toBeVisible();
});

test('an owner without an alert reads what an alert is', async ({ page, open, site }) => {
  await open('/alerts', site.other.key);
  await expect(page.getByText('No alert yet')).toBeVisible();
  await accessible(page);
});
