import type { Page } from '@playwright/test';
import { accessible, expect, simulation, test } from './fixtures';

/** reach presses Tab until the element with this label or name has the focus, and returns the page's keyboard. */
async function reach(page: Page, role: 'button' | 'textbox' | 'combobox' | 'spinbutton' | 'checkbox' | 'link' | 'tab', name: string | RegExp) {
  const within = (await page.getByRole('dialog').count()) > 0 ? page.getByRole('dialog') : page;
  const wanted = within.getByRole(role, { name, exact: typeof name === 'string' }).first();
  await expect(wanted).toBeVisible();
  for (let n = 0; n < 150; n++) {
    if (await wanted.evaluate((element) => element === document.activeElement)) {
      return page.keyboard;
    }
    await page.keyboard.press('Tab');
  }
  throw new Error(`${role} ${String(name)} is not reached by the Tab key`);
}

/** write replaces the text of a field. */
async function write(page: Page, role: 'textbox' | 'combobox', name: string, text: string) {
  const keyboard = await reach(page, role, name);
  await keyboard.press('Control+a');
  await keyboard.insertText(text);
}

/** choose takes an option of a list by the arrow keys: what is typed slowly would choose another one. */
async function choose(page: Page, name: string, value: string) {
  const keyboard = await reach(page, 'combobox', name);
  const chosen = () => page.evaluate(() => (document.activeElement as HTMLSelectElement).value);
  await keyboard.press('Home');
  for (let n = 0; n < 20 && (await chosen()) !== value; n++) {
    await keyboard.press('ArrowDown');
  }
  expect(await chosen()).toBe(value);
}

test('a job is made and cancelled by keyboard alone', async ({ page, open, api, unique }) => {
  await open('/new');
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
  await choose(page, 'Job type', 'SIMULATION');
  await write(page, 'textbox', 'Tags', unique);
  await (await reach(page, 'button', 'Submit the job')).press('Enter');
  await expect.poll(async () => (await api<{ jobs: unknown[] }>('GET', `/api/jobs?tag=${unique}`)).jobs.length).toBe(1);

  const { jobId } = await api<{ jobId: string }>('POST', '/api/jobs', { ...simulation({ type: 'LOG', message: 'x' }), delayMs: 3_600_000 });
  await open(`/jobs/${jobId}`);
  await (await reach(page, 'button', 'Cancel')).press('Enter');
  await expect.poll(async () => (await api<{ status: string }>('GET', `/api/jobs/${jobId}`)).status).toBe('CANCELLED');
});

test('a schedule is made, changed and deleted by keyboard alone', async ({ page, open, api, unique }) => {
  await open('/schedules');
  await (await reach(page, 'button', 'New schedule')).press('Enter');
  await write(page, 'textbox', 'Name', unique);
  await write(page, 'textbox', 'Cron', '30 6 * * *');
  await page.keyboard.press('Enter'); // as in every form
  await expect(page.getByRole('dialog')).toHaveCount(0);
  await (await reach(page, 'link', unique)).press('Enter');
  await (await reach(page, 'button', 'Edit')).press('Space');
  await page.keyboard.press('Escape');
  await expect(page.getByRole('dialog')).toHaveCount(0);
  await expect(page.getByRole('button', { name: 'Edit' })).toBeFocused(); // where it was before the dialog
  await page.keyboard.press('Enter');
  await write(page, 'textbox', 'Cron', '15 7 * * *');
  await (await reach(page, 'button', 'Save')).press('Enter');
  await expect(page.getByRole('dialog')).toHaveCount(0);
  expect(await api('GET', `/api/schedules/${unique}`)).toMatchObject({ cron: '15 7 * * *' });
  await (await reach(page, 'button', 'Delete')).press('Enter');
  await expect(page.getByText(`${unique} is deleted`)).toBeVisible();
});

test('a limit is set and removed by keyboard alone', async ({ page, open, api, site, unique }) => {
  const type = unique.toUpperCase();
  await open('/controls', site.admin);
  await (await reach(page, 'button', 'New limit or pause')).press('Enter');
  await choose(page, 'Of', 'type');
  await write(page, 'combobox', 'Name', type); // it has a list of suggestions
  await (await reach(page, 'checkbox', /^Paused/)).press('Space');
  await write(page, 'textbox', 'Run at once, at most', '7');
  await (await reach(page, 'button', 'Save')).press('Enter');
  await expect(page.getByRole('dialog')).toHaveCount(0);
  expect(await api('GET', `/api/controls/type/${type}`, undefined, site.admin)).toMatchObject({ maxRunning: 7, paused: false });
  await (await reach(page, 'button', `Remove all limits of the job type ${type}`)).press('Enter');
  await expect(page.getByText(`All limits of the job type ${type} are removed.`)).toBeVisible();
});

test('the page is used by keyboard alone: help, shortcuts, command palette, theme', async ({ page, open }) => {
  const heading = (name: string) => page.getByRole('heading', { name, level: 1 });
  const palette = page.getByRole('combobox');
  const keys = async (...all: string[]) => {
    for (const key of all) {
      await page.keyboard.press(key);
    }
  };
  await open('/workers');
  await expect(heading('Workers')).toBeVisible();
  await keys('Tab');
  await expect(page.getByRole('link', { name: 'Skip to content' })).toBeFocused();
  await keys('Enter');
  await expect(page.getByRole('main')).toBeFocused();
  await keys('?');
  await expect(page.getByRole('dialog', { name: 'Keyboard' }).getByText('Go to Dead letters')).toBeVisible();
  await accessible(page, 'keyboard help');
  await keys('Escape');
  await expect(page.getByRole('dialog')).toHaveCount(0);
  await keys('g', 'd');
  await expect(heading('Dead letters')).toBeVisible();

  await keys('Control+k');
  await page.keyboard.type('sched');
  await accessible(page, 'command palette');
  await keys('ArrowDown', 'ArrowUp');
  await expect(page.getByRole('option', { name: /Go to Schedules/ })).toHaveAttribute('aria-selected', 'true');
  await keys('Enter');
  await expect(heading('Schedules')).toBeVisible();

  await page.emulateMedia({ colorScheme: 'light' });
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await background();
  await keys('/');
  await expect(palette).toBeFocused();
  await page.keyboard.type('theme dark');
  await keys('Enter');
  await expect.poll(background).not.toBe(light);
  await accessible(page, 'dark by choice');
  await page.reload();
  await expect(heading('Schedules')).toBeVisible();
  expect(await background()).not.toBe(light); // the browser keeps it
});

test('a paused page shows that and sends no requests, and a hidden one sends none', async ({ page, open }) => {
  await page.clock.install();
  const asked: string[] = [];
  page.on('request', (request) => request.url().includes('/api/') && asked.push(request.url()));
  await open('/workers');
  await expect(page.getByText('Last heartbeat').first()).toBeVisible();
  const silent = async () => {
    await page.clock.runFor(1000); // responses to earlier requests
    asked.splice(0);
    await page.clock.runFor(60_000);
    expect(asked).toEqual([]);
  };
  const asks = async () => {
    asked.splice(0);
    await expect.poll(() => page.clock.runFor(5000).then(() => asked.length)).toBeGreaterThan(5);
  };
  await asks();

  await page.getByRole('button', { name: 'Live. Pause live updates' }).click();
  await expect(page.getByRole('button', { name: 'Paused. Resume live updates' })).toBeVisible();
  await silent();
  await page.getByRole('button', { name: 'Paused. Resume live updates' }).click();

  const show = (state: 'hidden' | 'visible') =>
    page.evaluate((value) => {
      Object.defineProperty(document, 'visibilityState', { value, configurable: true });
      Object.defineProperty(document, 'hidden', { value: value === 'hidden', configurable: true });
      document.dispatchEvent(new Event('visibilitychange', { bubbles: true }));
    }, state);
  await show('hidden');
  await silent();
  await show('visible');
  await asks();
});

test('a hidden tab ends its stream', async ({ page, open }) => {
  const stream = page.waitForRequest('**/api/stream**');
  await open('/jobs');
  const request = await stream;
  const ended = page.waitForEvent('requestfailed', (failed) => failed === request);
  await page.evaluate(() => {
    Object.defineProperty(document, 'hidden', { value: true, configurable: true });
    document.dispatchEvent(new Event('visibilitychange'));
  });
  await ended;
});

test('the rows of the list are reached, selected and opened by keys', async ({ page, open, api, site, unique, context }) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  const later = { ...simulation({ type: 'LOG', message: 'x' }), delayMs: 3_600_000, tags: [unique] };
  await api('POST', '/api/jobs/batch', { jobs: [later, later, later] });
  const { jobs } = await api<{ jobs: { jobId: string }[] }>('GET', `/api/jobs?tag=${unique}`);
  const link = (n: number) => page.locator(`.job-link[href="/jobs/${jobs[n]?.jobId}"]`);
  await open(`/jobs?tag=${unique}`, site.operator.key);
  await expect(link(2)).toBeVisible();
  for (const [key, n] of [['j', 0], ['j', 1], ['k', 0], ['k', 0], ['j', 1]] as const) {
    await page.keyboard.press(key);
    await expect(link(n)).toBeFocused();
  }
  await page.keyboard.press('x');
  await expect(page.getByText('1 job selected')).toBeVisible();
  await expect(link(1)).toBeFocused();
  await page.keyboard.press('c');
  await expect(page.getByText(`Copied the id ${jobs[1]?.jobId}`)).toBeVisible();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(jobs[1]?.jobId);
  await page.keyboard.press('?');
  await expect(page.getByRole('dialog', { name: 'Keyboard' }).getByText('Copy the id of the job')).toBeVisible();
  await page.keyboard.press('Escape');
  await page.keyboard.press('j');
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/\/jobs\/[0-9a-f-]{36}$/);
});

test('the command palette opens what has a name or an id', async ({ page, open, api, site, unique }) => {
  const name = unique.toLowerCase();
  const one = simulation({ type: 'LOG', message: 'x' });
  const { batchId } = await api<{ batchId: string }>('POST', '/api/batches', { name, closed: true, jobs: [one] });
  const { flowId } = await api<{ flowId: string }>('POST', '/api/flows', { name: `flow ${name}`, jobs: { a: one } });
  const { jobId } = await api<{ jobId: string }>('POST', '/api/jobs', one);
  const { operationId } = await api<{ operationId: string }>('POST', '/api/operations', { command: 'cancel', jobIds: [jobId] });
  await api('POST', '/api/schedules', { name: `s-${name}`, cron: '@daily', job: one });
  await api('POST', '/api/alerts', { name: `a-${name}`, to: { email: ['ada@example.org'] }, paused: true });
  for (const [typed, option, address] of [
    [jobId, `Open the job ${jobId}`, `/jobs/${jobId}`],
    [batchId, `Open the batch ${batchId}`, `/batches/${batchId}`],
    [flowId.replaceAll('-', ''), `Open the flow ${flowId}`, `/flows/${flowId}`],
    [operationId, `Open the operation ${operationId}`, `/operations/${operationId}`],
    [`s-${name}`, `Schedule s-${name} of acme`, `/schedules/s-${name}?ownerId=acme`],
    [`a-${name}`, `Alert a-${name} of acme`, `/alerts/a-${name}?ownerId=acme`],
    [`flow ${name}`, new RegExp(`^Flow flow ${name}`), `/flows/${flowId}`],
    ['simulat', 'Job type SIMULATION', '/types/SIMULATION'],
    ['status:failed since:yesterday', /^Search jobs for/, '/jobs?status=FAILED&since=yesterday'],
  ] as const) {
    await open('/workers');
    await expect(page.getByRole('heading', { name: 'Workers', level: 1 })).toBeVisible();
    await page.keyboard.press('Control+k');
    await page.keyboard.insertText(typed);
    await page.getByRole('option', { name: option }).first().click();
    await expect(page).toHaveURL(`${site.url}${address}`);
  }
});
