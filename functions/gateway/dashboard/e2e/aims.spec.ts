import type { Locator, Page } from '@playwright/test';
import { expect, simulation, test } from './fixtures';

/** Hand counts the clicks and keys of a user. A typed text counts with the key that sends it. */
class Hand {
  used = 0;

  constructor(private readonly page: Page) {}

  async click(on: Locator): Promise<void> {
    await on.click();
    this.used++;
  }

  async press(key: string): Promise<void> {
    await this.page.keyboard.press(key);
    this.used++;
  }
}

test('the failed jobs of a customer of yesterday are three clicks or keys from the overview', async ({ page, open, api, site, unique }) => {
  const job = { ...simulation({ type: 'FAIL', errorCode: 'AIMS.DECLINED', retryable: false }), tags: [`customer:${unique}`] };
  await Promise.all([1, 2].map(() => api('POST', '/api/jobs?wait=30s', job)));
  await page.clock.setFixedTime(Date.now() + 24 * 3_600_000); // so that they were accepted yesterday
  const hand = new Hand(page);
  const rows = page.getByRole('row').filter({ hasText: 'AIMS.DECLINED' });
  await open('/', site.admin);
  await expect(page.getByText('COMPLETED').first()).toBeVisible();
  await hand.press('Control+k');
  await page.keyboard.type(`status:failed tag:customer:${unique} since:yesterday`);
  await hand.press('Enter');
  await expect(rows).toHaveCount(2);
  await expect(page).toHaveURL(/status=FAILED&tag=customer.*&since=yesterday/);
  expect(hand.used).toBeLessThanOrEqual(3);
});

test('the errors of two attempts are compared by two clicks', async ({ page, open, site }) => {
  const hand = new Hand(page);
  await open(`/jobs/${site.seeded.failedJob}`, site.seeded.key);
  await hand.click(page.getByLabel('Compare attempt 1'));
  await hand.click(page.getByLabel('Compare attempt 2'));
  const marked = page.getByRole('group', { name: 'Attempts 1 and 2 compared' }).locator('mark');
  await expect(marked.filter({ hasText: 'CRM.TIMEOUT' })).toBeVisible();
  await expect(marked.filter({ hasText: 'CRM.REFUSED' })).toBeVisible();
  expect(hand.used).toBe(2);
});

test('the failing branch of a flow of sixty is in view, and one click shows its error and log', async ({ page, open, site }) => {
  const hand = new Hand(page);
  await open(`/flows/${site.seeded.wideFlow}`, site.seeded.key);
  await expect(page.getByText(/^First failure: worker-number-(2|10), PAYMENT.CARD_DECLINED/)).toBeInViewport();
  await hand.click(page.getByRole('button', { name: 'Open', exact: true }));
  const panel = page.getByRole('region', { name: /^The job worker-number-(2|10)$/ });
  await expect(panel).toContainText('PAYMENT.CARD_DECLINED');
  await expect(panel).toContainText('asks the bank');
  expect(hand.used).toBe(1);
});

test('what a pause holds back is one click from the overview', async ({ page, open, api, site, unique }) => {
  await api('PUT', `/api/queues/${unique}`, {}, site.admin);
  await api('POST', `/api/controls/queue/${unique}/pause`, undefined, site.admin);
  await Promise.all([1, 2].map(() => api('POST', '/api/jobs', { ...simulation({ type: 'LOG', message: 'hi' }), queue: unique })));
  const hand = new Hand(page);
  await open('/', site.admin);
  await hand.click(page.getByRole('link', { name: new RegExp(`^Queue ${unique} is paused`) }));
  await expect(page.getByText('It holds 2 jobs')).toBeInViewport();
  expect(hand.used).toBe(1);
});

test('the page of workers shows at once which of them runs what', async ({ page, open, site }) => {
  await open('/workers', site.seeded.key);
  await expect(page.getByRole('row').filter({ hasText: 'SIMULATION' }).filter({ hasText: 'long' }).first()).toBeInViewport();
});
