import { accessible, expect, fits, test } from './fixtures';

test('a schedule is created, paused, run, changed, deleted, and brought back', async ({ page, open, api, faults, unique }) => {
  const name = `report.${unique}`;
  await open('/schedules');
  await page.getByRole('button', { name: 'New schedule' }).click();
  const form = page.getByRole('dialog');
  await form.getByLabel('Name').fill(name);
  await form.getByLabel('Cron').fill('30 6 * *');
  await form.getByLabel('Time zone').fill('Asia/Tokyo');
  await expect(form.getByText('No next times: cron')).toBeVisible();
  await accessible(page);
  await form.getByRole('button', { name: 'Create schedule' }).click();
  await expect(form.getByLabel('Cron')).toHaveAttribute('aria-invalid', 'true');
  expect(faults.splice(0).every((fault) => fault.includes('status of 400'))).toBe(true);
  const next = form.getByRole('status', { name: 'Next times' }).getByRole('listitem');
  await form.getByLabel('Cron').fill('*/10 * * * * *');
  await expect(next.filter({ hasText: /:[0-5]0 (JST|GMT)/ })).toHaveCount(5); // seconds that differ
  await form.getByLabel('Cron').fill('30 6 * * *');
  await expect(next.filter({ hasText: '06:30' })).toHaveCount(5);
  await form.getByLabel('Time zone').fill('America/New_York');
  await expect(next.filter({ hasText: /06:30 (GMT-|E)/ })).toHaveCount(5);
  await form.getByLabel('Time zone').fill('Asia/Tokyo');
  await form.getByLabel('Job', { exact: true }).fill('{"jobType": ');
  await form.getByRole('button', { name: 'Create schedule' }).click();
  await expect(form.getByText('This is no JSON')).toBeVisible();
  await form.getByLabel('Job', { exact: true }).fill(`{"jobType": "SIMULATION", "payload": {"steps": [{"type": "LOG", "message": "hi"}]}, "tags": ["${unique}"]}`);
  await form.getByRole('button', { name: 'Create schedule' }).click();
  await expect(form).toHaveCount(0);

  await page.getByRole('link', { name }).click();
  await expect(page.getByRole('listitem').filter({ hasText: '06:30' })).toHaveCount(5); // in the time of Tokyo
  await page.getByRole('button', { name: 'Run now' }).click();
  await expect(page.getByText(`${name} runs now as the job`)).toBeVisible();
  await expect(page.getByRole('region', { name: 'The last times' }).getByText('by hand').first()).toBeVisible();
  expect((await api<{ jobs: unknown[] }>('GET', `/api/jobs?tag=${unique}`)).jobs).toHaveLength(1);

  await page.getByRole('button', { name: `Pause ${name}` }).click();
  await expect(page.getByText('None while it is paused.')).toBeVisible();
  await page.locator('.toast').filter({ hasText: 'is paused' }).getByRole('button', { name: 'Undo' }).click();
  await expect(page.getByRole('listitem').filter({ hasText: '06:30' })).toHaveCount(5);

  await page.getByRole('button', { name: 'Edit' }).click();
  await form.getByLabel('Cron').fill('15 7 * * *');
  await form.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByRole('listitem').filter({ hasText: '07:15' })).toHaveCount(5);
  await page.setViewportSize({ width: 360, height: 740 });
  await fits(page);
  await page.setViewportSize({ width: 1280, height: 900 });

  await page.getByRole('button', { name: 'Delete' }).click();
  const deleted = page.locator('.toast').filter({ hasText: `${name} is deleted` });
  await expect(deleted).toBeVisible();
  await expect(page.getByRole('link', { name })).toHaveCount(0);
  await deleted.getByRole('button', { name: 'Undo' }).click();
  await expect(page.getByRole('link', { name })).toBeVisible();
  const back = await api<{ cron: string; job: { tags: string[] } }>('GET', `/api/schedules/${name}`);
  expect(back).toMatchObject({ cron: '15 7 * * *', timeZone: 'Asia/Tokyo', job: { tags: [unique] } });
});
