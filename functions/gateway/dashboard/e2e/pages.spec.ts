import { accessible, expect, fits, simulation, test } from './fixtures';

/** pages are all pages, with the heading and a text that is shown once the page has its data. */
const pages: { path: string; heading: string; shows: string | RegExp; as?: 'admin' }[] = [
  { path: '/', heading: 'Overview', shows: 'COMPLETED' },
  { path: '/jobs', heading: 'Jobs', shows: 'FAILED' },
  { path: '/batches', heading: 'Batches', shows: 'imported' },
  { path: '/flows', heading: 'Flows', shows: 'ordered' },
  { path: '/new', heading: 'New job', shows: 'curl' },
  { path: '/dead', heading: 'Dead letters', shows: 'DEMO.BROKEN' },
  { path: '/queues/default', heading: 'default', shows: 'What its jobs wait for' },
  { path: '/types/SIMULATION', heading: 'SIMULATION', shows: 'DEMO.BROKEN' },
  { path: '/rejected', heading: 'Rejected records', shows: /record/i, as: 'admin' },
  { path: '/schedules', heading: 'Schedules', shows: 'nightly' },
  { path: '/schedules/nightly?ownerId=acme', heading: 'nightly', shows: 'The next 5 times' },
  { path: '/controls', heading: 'Limits and pauses', shows: 'Nothing is paused or limited' },
  { path: '/workers', heading: 'Workers', shows: 'Last heartbeat' },
  { path: '/operations', heading: 'Operations', shows: 'jobs with tag later' },
  { path: '/audit?action=schedule.create', heading: 'Audit', shows: 'schedule/nightly' },
  { path: '/keys', heading: 'API keys', shows: 'acme read' },
  { path: '/nothing', heading: 'No such page', shows: 'There is no page at this address' },
];

for (const { path, heading, shows, as } of pages) {
  test(`${path} is accessible in both themes, and fits a phone`, async ({ page, open, site }) => {
    for (const look of ['light', 'dark', 'phone']) {
      await page.emulateMedia({ colorScheme: look === 'dark' ? 'dark' : 'light' });
      await page.setViewportSize(look === 'phone' ? { width: 360, height: 740 } : { width: 1280, height: 900 });
      await open(path, as === 'admin' ? site.admin : site.acme.key);
      await expect(page.getByRole('heading', { name: heading, level: 1 })).toBeVisible();
      await expect(page.getByRole('main').getByText(shows).first()).toBeVisible();
      await fits(page);
      await accessible(page, look);
      if (process.env['LOOK']) {
        await page.screenshot({ path: `${process.env['LOOK']}/${heading}-${look}.png` });
      }
    }
  });
}

test('an error code without a place to break fits the overview on a phone', async ({ page, open, api, site }) => {
  const errorCode = `DEMO.${'LONG_'.repeat(11)}END`;
  await api('POST', '/api/jobs?wait=30s', simulation({ type: 'FAIL', errorCode, retryable: false }));
  await page.setViewportSize({ width: 360, height: 740 });
  await open('/', site.acme.key);
  await expect(page.getByRole('main').getByText(errorCode)).toBeVisible();
  await fits(page);
});
