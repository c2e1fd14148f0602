import { accessible, expect, test } from './fixtures';

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
  await keys('ArrowDown', 'ArrowUp', 'ArrowDown');
  await expect(page.getByRole('option', { name: /Go to Schedules/ })).toHaveAttribute('aria-selected', 'true');
  await keys('Enter');
  await expect(heading('Schedules')).toBeVisible();

  await page.emulateMedia({ colorScheme: 'light' });
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await background();
  await keys('/');
  await expect(palette).toBeFocused();
  await page.keyboard.type('theme dark');
  await keys('ArrowDown', 'Enter');
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
