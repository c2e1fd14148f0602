import { expect, test } from './fixtures';
import { overviewAnswers } from './overview.answers';

const NOW = '2026-11-23T09:00:00.000Z';

test('the overview names what needs a person, and its chart leads to the jobs that ended then', async ({ page, open, site }) => {
  const answers: Record<string, unknown> = { ...overviewAnswers(NOW), '/api/jobs': { jobs: [], nextCursor: null } };
  await page.clock.setFixedTime(NOW);
  await page.route(({ pathname }) => pathname in answers, (route) => route.fulfill({ json: answers[new URL(route.request().url()).pathname] }));
  await open('/', site.admin);
  await expect(page.getByRole('heading', { name: '4 things need you' })).toBeVisible();
  await expect(page.locator('.triage li')).toHaveText([
    'Queue mail is paused for at least 48 min and holds 4,120 jobs',
    /^EMAIL fails \d× as often as the day before: [\d,]+ failures in 24 hours$/,
    'REPORT fails with a new error, REPORT.QUOTA: 9 jobs, the last 16 s ago',
    'notify does not read job-status: 40,211 records wait',
  ]);

  const chart = page.getByRole('img', { name: /^Jobs a minute/ });
  const box = (await chart.boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };
  await page.mouse.move(box.x + box.width * 0.3, box.y + 80);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.5, box.y + 80, { steps: 4 });
  await page.mouse.up();
  await expect(page).toHaveURL(/\/jobs\?status=COMPLETED&status=FAILED&status=CANCELLED&endedSince=.*&endedUntil=/);
  const { searchParams } = new URL(page.url());
  const minutes = (Date.parse(searchParams.get('endedUntil') ?? '') - Date.parse(searchParams.get('endedSince') ?? '')) / 60_000;
  expect(minutes).toBeGreaterThan(5);
  expect(minutes).toBeLessThan(25);

  await page.goBack();
  await page.getByLabel('Jobs that ended from').fill('2026-11-22T22:00');
  await page.getByLabel('to', { exact: true }).fill('2026-11-22T21:00');
  await expect(page.getByRole('button', { name: 'Show', exact: true })).toBeDisabled(); // it ends before it begins
  await page.getByLabel('to', { exact: true }).fill('2026-11-23T06:00');
  await page.getByRole('button', { name: 'Show', exact: true }).click();
  const night = new URL(page.url()).searchParams;
  expect(Date.parse(night.get('endedUntil') ?? '') - Date.parse(night.get('endedSince') ?? '')).toBe(8 * 3_600_000);

  await page.goBack();
  await page.getByRole('link', { name: /^Queue mail is paused/ }).click();
  await expect(page).toHaveURL(/\/queues\/mail$/);
});

test('the overview is calm where nothing needs a person', async ({ page, open, site }) => {
  await open('/', site.other.key);
  await expect(page.getByText('Nothing needs you.')).toBeVisible();
});
