import { expect, test } from './fixtures';

test('the overview shows the state of an installation', async ({ page, open, api }) => {
  const jobs = Array.from({ length: 40 }, (_, i) => ({
    jobType: 'SIMULATION',
    payload: { steps: [i % 9 === 0 ? { type: 'FAIL', errorCode: 'DEMO.BROKEN', retryable: false } : { type: 'SLEEP', durationMs: i * 20 }] },
    tags: ['overview'],
  }));
  await api('POST', '/api/jobs/batch', { jobs });
  await page.emulateMedia({ colorScheme: 'light' });
  await open('/');
  await expect(page.getByRole('main').getByText('DEMO.BROKEN').first()).toBeVisible();
  await expect(page.getByText('Loading')).toHaveCount(0);
});
