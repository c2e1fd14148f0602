import { accessible, expect, test } from './fixtures';

test('a user logs in at the issuer, and is back at the requested page', async ({ page }) => {
  await page.goto('/schedules');
  await accessible(page);
  await page.getByRole('button', { name: /^Log in at 127\.0\.0\.1/ }).click();
  await expect(page.getByRole('heading', { name: 'Schedules' })).toBeVisible();
  await expect(page).toHaveURL(/\/schedules$/); // no code stays in the address
  await expect(page.getByRole('link', { name: 'nightly' })).toBeVisible();
  await expect(page.getByRole('button', { name: 'New schedule' })).toHaveCount(0); // the token has the role read
  await page.reload();
  await expect(page.getByRole('link', { name: 'nightly' })).toBeVisible();
});

test('a login that this tab has not begun is refused', async ({ page }) => {
  await page.goto('/login?code=stolen&state=other');
  await expect(page.getByText('This tab has not asked the issuer for this login.')).toBeVisible();
  await expect(page).toHaveURL(/\/$/);
});

test('the page shows why the issuer refused', async ({ page }) => {
  await page.goto('/login?error=access_denied&error_description=not+today');
  await expect(page.getByText('The issuer answered access_denied: not today')).toBeVisible();
  await accessible(page);
});
