import { accessible, answered, call, expect, fits, simulation, test } from './fixtures';
import type { Key } from './installation';

test('a flow shows its graph, with conditions and a fan-out, and is cancelled', async ({ page, site, open, unique }) => {
  const { key } = await call<Key>(site.url, 'POST', '/api/keys', { name: unique, ownerId: unique, roles: ['admin'] }, site.admin);
  const log = (more: object = {}) => ({ ...simulation({ type: 'LOG', message: 'x' }), ...more });
  const { flowId, jobs } = await call<{ flowId: string; jobs: Record<string, string> }>(site.url, 'POST', '/api/flows', {
    name: unique,
    jobs: {
      reserve: log(),
      charge: { ...simulation({ type: 'SLEEP', durationMs: 600_000 }), after: ['reserve'] },
      release: log({ after: [{ name: 'charge', on: 'failed' }] }),
      each: log({ after: ['charge'], forEach: { $output: 'charge', path: '$.items' } }),
      report: log({ after: [{ name: 'each', on: 'ended' }, 'reserve'] }),
    },
  }, key);

  await open(`/batches/${flowId}`, key); // as the page of a job names it
  await expect(page).toHaveURL(new RegExp(`/flows/${flowId}$`));
  await expect(page.getByRole('heading', { name: unique, level: 1 })).toBeVisible();
  const graph = page.getByRole('region', { name: 'Graph of the flow' });
  const node = (name: string) => graph.getByRole('listitem').filter({ has: page.getByText(name, { exact: true }) });
  await expect(node('reserve')).toContainText('COMPLETED');
  await expect(node('charge')).toContainText('RUNNING');
  await expect(node('release')).toContainText('after charge failed');
  await expect(node('each')).toContainText('for each element');
  await expect(page.getByRole('button', { name: 'Retry', exact: true })).toHaveCount(0);
  for (const look of ['light', 'dark', 'phone']) {
    await page.emulateMedia({ colorScheme: look === 'dark' ? 'dark' : 'light' });
    await page.setViewportSize(look === 'phone' ? { width: 360, height: 740 } : { width: 1280, height: 900 });
    await fits(page);
    await accessible(page, look);
    if (process.env['LOOK']) {
      await page.screenshot({ path: `${process.env['LOOK']}/Flow-${look}.png`, fullPage: true });
    }
  }
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.getByRole('button', { name: 'Cancel', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel the jobs' }).click();
  await expect(node('charge')).toContainText('CANCELLED');
  await expect(page.locator('.page-header').getByText('CANCELLED')).toBeVisible({ timeout: 20_000 });
  await page.getByRole('button', { name: 'Retry', exact: true }).click();
  await expect(node('charge')).toContainText('RUNNING', { timeout: 20_000 });
  await expect(page.getByRole('button', { name: 'Retry', exact: true })).toHaveCount(0);
  await call(site.url, 'POST', `/api/flows/${flowId}/cancel`, undefined, key);
  await node('charge').getByRole('button').click();
  await page.getByRole('region', { name: 'The job charge' }).getByRole('link', { name: 'Open the job' }).click();
  await expect(page).toHaveURL(new RegExp(`/jobs/${jobs['charge']}$`));
  await page.getByText('in the flow').getByRole('link', { name: unique }).click();
  await expect(page).toHaveURL(new RegExp(`/flows/${flowId}\\?job=${jobs['charge']}$`));
  await expect(node('charge').getByRole('button')).toHaveAttribute('aria-pressed', 'true');
  await page.getByRole('link', { name: 'All flows' }).click();
  await expect(page.getByRole('row').filter({ hasText: unique })).toContainText('CANCELLED');
});

test('a flow whose compensation has run is asked what of it runs again', async ({ page, site, open, unique, faults }) => {
  const { key } = await call<Key>(site.url, 'POST', '/api/keys', { name: unique, ownerId: unique, roles: ['admin'] }, site.admin);
  const log = { ...simulation({ type: 'LOG', message: 'x' }) };
  type Flow = { status: string; run: number; jobs: Record<string, { jobId: string }> };
  const { flowId, jobs } = await call<{ flowId: string; jobs: Record<string, string> }>(site.url, 'POST', '/api/flows', {
    name: unique,
    jobs: {
      charge: log,
      ship: { ...simulation({ type: 'FAIL', failAttempts: 1, retryable: false }), after: ['charge'] },
      refund: { ...log, after: ['charge', { name: 'ship', on: 'failed' }] },
    },
  }, key);
  const flow = () => call<Flow>(site.url, 'GET', `/api/flows/${flowId}?wait=30s`, undefined, key);
  expect((await flow()).status).toBe('FAILED');

  await open(`/flows/${flowId}`, key);
  const dialog = page.getByRole('dialog', { name: `What of ${unique} runs again?` });
  const names = dialog.getByLabel('From');
  const chosen = () => names.evaluate((select: HTMLSelectElement) => [...select.selectedOptions].map((option) => option.value));
  await page.getByRole('button', { name: 'Retry', exact: true }).click();
  await expect(dialog).toContainText('A job that waits for the failure of another one has run.');
  answered(faults, 409);
  expect(await chosen()).toEqual(['ship']); // what has failed
  await accessible(page);
  await dialog.getByRole('button', { name: 'Keep it as it is' }).click();
  expect((await flow()).run).toBe(1);

  await page.getByRole('button', { name: 'Retry', exact: true }).click();
  await expect(dialog).toBeVisible();
  answered(faults, 409);
  await names.selectOption([]);
  await expect(dialog.getByRole('button', { name: 'From the chosen jobs on' })).toBeDisabled();
  await names.selectOption(['ship']);
  await dialog.getByRole('button', { name: 'From the chosen jobs on' }).click();
  await expect(dialog).toHaveCount(0);
  await expect.poll(async () => (await flow()).run).toBe(2);
  const second = await flow();
  expect([second.jobs['charge']?.jobId === jobs['charge'], second.jobs['ship']?.jobId === jobs['ship']]).toEqual([true, false]);

  await page.getByRole('button', { name: 'Retry', exact: true }).click({ timeout: 20_000 });
  await expect(dialog).toBeVisible();
  answered(faults, 409);
  await dialog.getByRole('button', { name: 'The whole flow' }).click();
  await expect.poll(async () => (await flow()).run).toBe(3);
  expect((await flow()).jobs['charge']?.jobId).not.toBe(jobs['charge']);
});

test('the jobs of a fan-out are listed from its flow and from its own page', async ({ page, site, open, unique }) => {
  const { key } = await call<Key>(site.url, 'POST', '/api/keys', { name: unique, ownerId: unique, roles: ['admin', 'work'] }, site.admin);
  const { flowId, jobs } = await call<{ flowId: string; jobs: Record<string, string> }>(site.url, 'POST', '/api/flows', {
    name: unique,
    jobs: {
      list: { jobType: 'INVOICE', queue: 'pull', payload: {} },
      each: { ...simulation({ type: 'LOG', message: 'x' }), after: ['list'], forEach: { $output: 'list' } },
    },
  }, key);
  const { attempts } = await call<{ attempts: { token: string }[] }>(site.url, 'POST', '/api/workers/claim', { worker: unique, types: ['INVOICE'], wait: '30s' }, key);
  await call(site.url, 'POST', '/api/workers/settle', { worker: unique, results: [{ token: attempts[0]?.token, status: 'COMPLETED', output: [1, 2] }] }, key);

  await open(`/flows/${flowId}`, key);
  await page.getByRole('button', { name: /each.*2\/2 elements/ }).click({ timeout: 20_000 });
  await page.getByRole('link', { name: 'Jobs of the elements' }).click();
  await expect(page).toHaveURL(new RegExp(`/jobs\\?fanOutId=${jobs['each']}$`));
  const rows = page.getByRole('row').filter({ hasText: 'SIMULATION' });
  await expect(rows).toHaveCount(2);
  await rows.first().getByRole('link').first().click();
  await expect(page.getByText(', element 1')).toBeVisible();
  await page.getByRole('link', { name: jobs['each'] }).click();
  await page.getByRole('link', { name: 'Jobs of the elements' }).click();
  await expect(rows).toHaveCount(2);
});

test('a flow of ten thousand jobs is drawn as groups', async ({ page, site, open, unique }) => {
  const jobs: Record<string, object> = { first: { ...simulation({ type: 'LOG', message: 'x' }), delayMs: 3_600_000 } };
  for (let i = 0; i < 9_999; i++) {
    jobs[`job${i}`] = { ...simulation({ type: 'LOG', message: 'x' }), after: ['first'] };
  }
  const { flowId } = await call<{ flowId: string }>(site.url, 'POST', '/api/flows', { name: unique, jobs }, site.acme.key);
  await open(`/flows/${flowId}`, site.acme.key);
  await page.getByRole('button', { name: /job\*.*0\/9,999/ }).click(); // too many to unfold
  await expect(page.getByText('9,999 pending')).toBeVisible();
  await expect(page.getByRole('link', { name: 'All of them' })).toHaveAttribute('href', new RegExp(`batchId=${flowId}.*type=SIMULATION`));
  await call(site.url, 'POST', `/api/flows/${flowId}/cancel`, undefined, site.acme.key);
});

test('a flow that does not exist is reported, and an owner without flows sees what they are for', async ({ page, site, open, unique, faults }) => {
  const { key } = await call<Key>(site.url, 'POST', '/api/keys', { name: unique, ownerId: unique, roles: ['read'] }, site.admin);
  await open('/flows', key);
  await expect(page.getByText('No flow yet')).toBeVisible();
  await page.goto('/flows/01936f3e-5f3e-7cc0-8000-0123456789ab');
  await expect(page.getByRole('alert')).toBeVisible();
  expect(faults.splice(0).every((fault) => fault.includes('status of 404'))).toBe(true);
});

test('a wide flow folds equal jobs, fits, shows its first failure, and runs again from there', async ({ page, site, open, unique }) => {
  const { key } = await call<Key>(site.url, 'POST', '/api/keys', { name: unique, ownerId: unique, roles: ['admin'] }, site.admin);
  const log = { ...simulation({ type: 'LOG', message: 'counted' }) };
  const jobs: Record<string, object> = { list: log };
  for (let i = 0; i < 60; i++) {
    jobs[`worker-number-${i}`] = i === 2 || i === 10
      ? { ...simulation({ type: 'LOG', message: 'asks the bank' }, { type: 'FAIL', errorCode: 'PAYMENT.CARD_DECLINED', retryable: false }), after: ['list'] }
      : { ...log, after: ['list'] };
  }
  jobs['sum'] = { ...log, after: Object.keys(jobs).filter((name) => name !== 'list') };
  for (let i = 0, before = 'sum'; i < 8; i++, before = `step-${i - 1}`) {
    jobs[`step-${i}`] = { ...log, after: [before] };
  }
  const { flowId } = await call<{ flowId: string }>(site.url, 'POST', '/api/flows', { name: unique, jobs }, key);
  const flow = () => call<{ status: string; run: number; jobs: Record<string, { status: string }> }>(site.url, 'GET', `/api/flows/${flowId}?wait=30s`, undefined, key);
  expect((await flow()).status).toBe('FAILED');

  await open(`/flows/${flowId}`, key);
  const failure = page.getByText(/^First failure: worker-number-(2|10), PAYMENT.CARD_DECLINED/);
  await expect(failure).toBeVisible();
  const graph = page.getByRole('region', { name: 'Graph of the flow' });
  const fold = graph.getByRole('button', { name: /worker-number-\*.*58\/60, 2 failed/ });
  for (const width of [390, 1024, 1440]) {
    await page.setViewportSize({ width, height: 900 });
    await expect.poll(() => graph.evaluate((box) => box.scrollWidth - box.clientWidth), `fits ${width} px`).toBeLessThanOrEqual(0);
    await fits(page);
    await accessible(page, String(width));
  }
  await graph.press('+');
  await expect(page.getByLabel('Size of the graph')).not.toHaveText('100 %');
  await graph.press('0');
  await page.getByRole('button', { name: 'Open', exact: true }).click(); // the failing branch: one click
  const panel = page.getByRole('region', { name: /^The job worker-number/ });
  await expect(panel).toContainText('PAYMENT.CARD_DECLINED');
  await expect(panel).toContainText('asks the bank');
  await panel.getByRole('button', { name: 'Close' }).click();
  await fold.click();
  const names = graph.getByRole('button', { name: /^worker-number-/ });
  await expect(names).toHaveCount(60);
  const order = (await names.evaluateAll((all) => all.map((one) => one.getAttribute('title')))).slice(0, 4);
  expect(order).toEqual([0, 1, 2, 3].map((i) => `worker-number-${i}`));
  await page.getByRole('button', { name: 'Fold equal jobs' }).click();
  await expect(fold).toBeVisible();

  await page.getByRole('button', { name: 'Waterfall' }).click();
  await expect(page).toHaveURL(/view=waterfall/);
  const rows = page.getByRole('list', { name: 'Jobs by the time of their start' }).getByRole('listitem');
  await expect(rows).toHaveCount(11);
  await expect(rows.nth(0)).toContainText('list');
  await expect(rows.nth(1)).toContainText('58/60, 2 failed');
  for (const width of [390, 1440]) {
    await page.setViewportSize({ width, height: 900 });
    await fits(page);
    await accessible(page, `waterfall ${width}`);
  }
  await page.getByRole('button', { name: 'Retry from here' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('button', { name: 'From the chosen jobs on' }).click();
  await expect.poll(async () => (await flow()).run).toBe(2);
});
