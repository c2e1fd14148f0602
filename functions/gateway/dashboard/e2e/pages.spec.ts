import type { Page } from '@playwright/test';
import { accessible, expect, fits, simulation, test, type Site } from './fixtures';
import type { Seeded } from './seed';

interface Look {
  path: string | ((seeded: Seeded) => string);
  heading: string;
  shows: string | RegExp; // once the page has its data
  as?: 'admin' | 'acme'; // otherwise the owner of the seeded data
}

/** pages are all pages, with the data of an installation in use. */
const pages: Look[] = [
  { path: '/', heading: 'Overview', shows: 'COMPLETED' },
  { path: '/', heading: 'Overview', shows: 'SYNC_CRM', as: 'admin' },
  { path: '/jobs?status=SCHEDULED', heading: 'Jobs', shows: /^a-tag-of-sixty/ },
  { path: '/jobs?status=FAILED', heading: 'Jobs', shows: 'CRM.TIMEOUT' },
  { path: ({ failedJob }) => `/jobs/${failedJob}`, heading: 'INVOICE', shows: 'CRM.REFUSED' },
  { path: ({ arabicJob }) => `/jobs/${arabicJob}`, heading: 'INVOICE', shows: 'customer:Müller' },
  { path: '/batches', heading: 'Batches', shows: 'import of contacts' },
  { path: ({ batch }) => `/batches/${batch}`, heading: 'import of contacts', shows: 'COMPLETED' },
  { path: '/flows', heading: 'Flows', shows: 'ship the orders' },
  { path: ({ wideFlow }) => `/flows/${wideFlow}`, heading: 'ship the orders of 2026-11-27', shows: 'PAYMENT.CARD_DECLINED' },
  { path: ({ wideFlow }) => `/flows/${wideFlow}?view=waterfall`, heading: 'ship the orders of 2026-11-27', shows: '58/60, 2 failed' },
  { path: ({ eachFlow }) => `/flows/${eachFlow}`, heading: 'invoices', shows: '30/30' },
  { path: '/new', heading: 'New job', shows: 'curl' },
  { path: '/dead', heading: 'Dead letters', shows: 'SMTP.MAILBOX_FULL' },
  { path: '/queues/default', heading: 'default', shows: 'What its jobs wait for' },
  { path: '/types/INVOICE', heading: 'INVOICE', shows: 'CRM.REFUSED' },
  { path: '/rejected', heading: 'Rejected records', shows: /record/i, as: 'admin' },
  { path: '/schedules', heading: 'Schedules', shows: 'nightly-revenue' },
  { path: '/schedules/ny-close?ownerId=initech', heading: 'ny-close', shows: 'The next 5 times' },
  { path: '/alerts', heading: 'Alerts', shows: 'crm-down' },
  { path: '/alerts/crm-down?ownerId=initech', heading: 'crm-down', shows: 'test' },
  { path: '/controls', heading: 'Limits and pauses', shows: 'SYNC_CRM', as: 'admin' },
  { path: '/controls', heading: 'Limits and pauses', shows: 'Nothing is paused or limited', as: 'acme' },
  { path: '/workers', heading: 'Workers', shows: 'Last heartbeat', as: 'admin' },
  { path: '/operations', heading: 'Operations', shows: 'account-17' },
  { path: ({ operation }) => `/operations/${operation}`, heading: 'reschedule', shows: 'account-17' },
  { path: '/audit', heading: 'Audit', shows: 'schedule/nightly-revenue' },
  { path: '/keys', heading: 'API keys', shows: 'acme read', as: 'acme' },
  { path: '/nothing', heading: 'No such page', shows: 'There is no page at this address' },
];

const keyOf = ({ admin, acme, seeded }: Site, as: Look['as']) => (as === 'admin' ? admin : as === 'acme' ? acme.key : seeded.key);

for (const [i, { path, heading, shows, as }] of pages.entries()) {
  const name = typeof path === 'string' ? path : heading;
  test(`${i} ${name} ${as ?? ''} is accessible and fits, on phones, tablets and desks, light and dark`, async ({ page, open, site }) => {
    await page.emulateMedia({ colorScheme: 'light' });
    await page.setViewportSize({ width: 1440, height: 900 });
    await open(typeof path === 'string' ? path : path(site.seeded), keyOf(site, as));
    await expect(page.getByRole('heading', { name: heading, level: 1 })).toBeVisible();
    await expect(page.getByRole('main').getByText(shows).first()).toBeVisible();
    await expect(page.getByText('Loading')).toHaveCount(0);
    for (const width of [1440, 1024, 390, 360]) {
      await page.setViewportSize({ width, height: width < 600 ? 800 : 900 });
      await fits(page);
      if (width === 360) {
        break; // the narrowest phone looks as the other one
      }
      await accessible(page, `${width} light`);
      await picture(page, `${i}-${heading}-${width}-light`);
      await page.emulateMedia({ colorScheme: 'dark' });
      await accessible(page, `${width} dark`, ['color-contrast']); // only colours depend on the theme
      await picture(page, `${i}-${heading}-${width}-dark`);
      await page.emulateMedia({ colorScheme: 'light' });
    }
  });
}

/** picture keeps a picture of the whole page if LOOK names a folder. */
async function picture(page: Page, name: string): Promise<void> {
  if (process.env['LOOK']) {
    await page.screenshot({ path: `${process.env['LOOK']}/${name}.png`, fullPage: true });
  }
}

test('an error code without a place to break fits the overview on a phone', async ({ page, open, api, site }) => {
  const errorCode = `DEMO.${'LONG_'.repeat(11)}END`;
  await api('POST', '/api/jobs?wait=30s', simulation({ type: 'FAIL', errorCode, retryable: false }));
  await page.setViewportSize({ width: 360, height: 740 });
  await open('/', site.acme.key);
  await expect(page.getByRole('main').getByText(errorCode)).toBeVisible();
  await fits(page);
});
