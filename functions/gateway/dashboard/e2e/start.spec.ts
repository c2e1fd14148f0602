import type { Route } from '@playwright/test';
import { accessible, expect, test } from './fixtures';

const nothing = () => undefined; // no response at all
const failed = (route: Route) => void route.fulfill({ status: 503, json: { errorCode: 'API.UNAVAILABLE', message: 'the store is away' } });
const passed = (route: Route) => void route.continue();

test('the page shows what it waits for while the gateway hangs or is not ready, and opens when it answers', async ({ page, open, faults }) => {
  const heading = (name: string) => page.getByRole('heading', { name, level: 1 });
  let answer: (route: Route) => void = nothing;
  await page.route('**/api/me', (route) => answer(route));
  await open('/workers');
  await expect(heading('Connecting to JobWeaver')).toBeVisible();
  await accessible(page, 'waiting');
  await expect(page.getByText(/^No answer for \d+ s\.$/)).toBeVisible();
  await accessible(page, 'waiting for long');

  answer = failed;
  await page.getByRole('button', { name: 'Try again' }).click();
  await expect(heading('JobWeaver cannot be shown yet')).toBeVisible();
  await expect(page.getByText('the store is away')).toBeVisible();
  await accessible(page, 'not ready');
  await page.emulateMedia({ colorScheme: 'dark' });
  await accessible(page, 'not ready, dark');

  answer = passed;
  await expect(heading('Workers')).toBeVisible(); // without a click
  expect(faults.splice(0).every((fault) => fault.includes('status of 503'))).toBe(true);
});

test('a page whose code is being loaded has its heading, and opens after an upgrade took that code away', async ({ page, open, faults }) => {
  const code = '**/assets/WorkersPage-*.js';
  const heading = page.getByRole('heading', { name: 'Workers', level: 1 });
  let documents = 0;
  page.on('request', (request) => (documents += request.isNavigationRequest() ? 1 : 0));
  let answer: (route: Route) => void = nothing;
  await page.route(code, (route) => answer(route));
  await open('/workers');
  await expect(heading).toBeVisible();
  await expect(page.getByText('Loading')).toBeAttached();
  await accessible(page, 'loading its code');

  answer = (route) => void route.fulfill({ status: 404 });
  await page.reload();
  await expect(page.getByText('This page cannot be loaded')).toBeVisible();
  expect(documents).toBe(3); // opened, reloaded here, reloaded once by the page
  await expect(heading).toBeVisible();
  await accessible(page, 'without its code');
  await page.getByRole('navigation').getByRole('link', { name: 'Schedules' }).click();
  await expect(page.getByRole('link', { name: 'nightly' })).toBeVisible(); // other pages can still be opened

  let missing = true; // the old document asks for it once, the new one finds its own
  answer = (route) => (missing ? void route.fulfill({ status: 404 }) : passed(route));
  page.on('framenavigated', () => (missing = false));
  await open('/workers');
  await expect(page.getByText('2 live workers')).toBeVisible();
  expect(faults.splice(0).every((fault) => /status of 404|a file of the dashboard is missing/.test(fault))).toBe(true);
});
