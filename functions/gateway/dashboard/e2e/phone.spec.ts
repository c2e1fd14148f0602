import type { Locator } from '@playwright/test';
import { expect, test } from './fixtures';
import { LONG_TYPE } from './seed';

test.use({ viewport: { width: 390, height: 844 } });

/** inReach fails if something of a kind is outside the window, at its left or right. */
async function inReach(all: Locator, least: number): Promise<void> {
  await expect(all.nth(least - 1)).toBeVisible();
  for (const one of await all.all()) {
    const box = await one.boundingBox();
    expect(box, 'it is drawn').not.toBeNull();
    expect(box?.x).toBeGreaterThanOrEqual(0);
    expect((box?.x ?? 0) + (box?.width ?? 0)).toBeLessThanOrEqual(390);
  }
}

test('a phone reaches the actions of schedules, and the times of each', async ({ page, open, site }) => {
  await open('/schedules', site.seeded.key);
  const list = page.getByRole('region', { name: 'Schedules' });
  await inReach(list.getByRole('button'), 8);
  await inReach(list.getByRole('link', { name: 'nightly-revenue' }), 1);
  await expect(list.getByRole('row').filter({ hasText: 'ny-close' })).toContainText('0 16 * * MON-FRI');
});

test('a phone reaches the actions of limits', async ({ page, open, site }) => {
  await open('/controls', site.admin);
  await inReach(page.getByRole('region', { name: 'Limits and pauses' }).getByRole('button'), 9);
});

test('a phone shows the error of a job, and selects it', async ({ page, open, site }) => {
  await open('/jobs?status=FAILED', site.seeded.key);
  const jobs = page.getByRole('region', { name: 'Jobs' });
  await inReach(jobs.getByText('CRM.TIMEOUT'), 1);
  await inReach(jobs.getByRole('checkbox', { name: /^Select the job/ }), 5);
  await jobs.getByRole('checkbox', { name: /^Select the job/ }).first().check();
  await inReach(page.getByRole('button', { name: /^Retry/ }), 1);
});

test('a phone selects all jobs or groups at once, though cards have no row of headings', async ({ page, open, site }) => {
  await open('/jobs?status=FAILED', site.seeded.key);
  await page.getByRole('button', { name: 'Select all that are shown' }).click();
  await inReach(page.getByRole('button', { name: 'Select everything that matches' }), 1);
  await expect(page.getByRole('button', { name: 'Select all that are shown' })).toHaveCount(0);
  await open('/dead', site.seeded.key);
  await page.getByRole('button', { name: 'Select all that are shown' }).click();
  await expect(page.getByRole('region', { name: 'Selected groups' })).toContainText(/\d+ jobs in \d+ groups/);
  await inReach(page.getByRole('region', { name: 'Selected groups' }).getByRole('button'), 3);
});

test('a phone keeps its cards apart, also those of jobs with long names', async ({ page, open, site }) => {
  await open('/jobs?status=SCHEDULED', site.seeded.key);
  const rows = page.getByRole('region', { name: 'Jobs' }).getByRole('row');
  await expect(rows.filter({ hasText: LONG_TYPE })).toBeVisible();
  const edges = await rows.evaluateAll((all) => all.slice(1).map((row) => row.getBoundingClientRect()).map(({ top, bottom }) => [top, bottom]));
  for (const [i, [top]] of edges.entries()) {
    expect(top).toBeGreaterThanOrEqual((edges[i - 1]?.[1] ?? -Infinity) - 1);
  }
});

test('a tablet keeps the name of a row in view, and shows that the table goes on', async ({ page, open, site }) => {
  await page.setViewportSize({ width: 768, height: 900 });
  await open('/jobs', site.seeded.key);
  const jobs = page.getByRole('region', { name: 'Jobs' });
  const cell = jobs.getByRole('row').nth(1).getByRole('cell').nth(1);
  await expect(cell).toBeVisible();
  await jobs.evaluate((box) => (box.style.width = '30rem')); // narrower than any set of columns
  await expect(jobs).toHaveClass(/table-hides-right/);
  await expect(jobs).toHaveAttribute('tabindex', '0');
  const before = (await cell.boundingBox())?.x ?? 0;
  await jobs.evaluate((box) => (box.scrollLeft = box.scrollWidth));
  await expect(jobs).toHaveClass(/table-hides-left/);
  const after = (await cell.boundingBox())?.x ?? -1;
  expect(after).toBeGreaterThanOrEqual(0);
  expect(after).toBeLessThanOrEqual(before);
});
