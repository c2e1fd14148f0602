import { createHash } from 'node:crypto';
import type { Page } from '@playwright/test';
import { accessible, answered, call, expect, test } from './fixtures';
import { BRIEF, BRIEF_S } from './issuer';

const atIssuer = (page: Page) => page.getByRole('button', { name: /^Log in at 127\.0\.0\.1/ });

/** logIn logs in at the issuer, which asks for the password. */
async function logIn(page: Page, name = 'ada', password = 'secret'): Promise<void> {
  await atIssuer(page).click();
  await page.getByLabel('Name').fill(name);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Continue' }).click();
}

const nightly = (page: Page) => page.getByRole('link', { name: 'nightly' });

test('a user logs in at the issuer, and is back at the requested page', async ({ page }) => {
  await page.goto('/schedules');
  await accessible(page);
  await logIn(page);
  await expect(page.getByRole('heading', { name: 'Schedules' })).toBeVisible();
  await expect(page).toHaveURL(/\/schedules$/); // no code stays in the address
  await expect(nightly(page)).toBeVisible();
  await expect(page.getByRole('button', { name: 'New schedule' })).toHaveCount(0); // the token has the role read
  await page.reload();
  await expect(nightly(page)).toBeVisible();
});

test('a login that this tab has not begun is refused', async ({ page }) => {
  await page.goto('/login?code=stolen&state=other');
  await expect(page.getByText('This tab has not asked the issuer for this login.')).toBeVisible();
  await expect(page).toHaveURL(/\/$/);
});

test('the page shows why the issuer refused', async ({ page }) => {
  await page.goto('/');
  await logIn(page, 'ada', 'guess');
  await expect(page.getByText('The issuer answered access_denied: wrong password')).toBeVisible();
  await accessible(page);
});

test('a code that another login got is refused', async ({ page, faults }) => {
  await page.route('**/token', async (route) => {
    const body = route.request().postData()?.replace(/code_verifier=[^&]*/, `code_verifier=${'A'.repeat(43)}`) ?? '';
    await route.continue({ postData: body });
  });
  await page.goto('/schedules');
  await logIn(page);
  await expect(page.getByText('The issuer gave no token: grant request is invalid')).toBeVisible();
  answered(faults, 400);
});

test('an ID token of another login is refused', async ({ page, browser, site }) => {
  const context = await browser.newContext();
  const other = await context.newPage();
  await other.goto(`${site.url}/schedules`);
  const answer = other.waitForResponse('**/token');
  await logIn(other);
  const stolen: unknown = await (await answer).json();
  await context.close();

  await page.route('**/token', (route) => route.fulfill({ json: stolen, headers: { 'Access-Control-Allow-Origin': '*' } }));
  await page.goto('/schedules');
  await logIn(page);
  await expect(page.getByText('The token is of another login.')).toBeVisible();
});

test('a token that the issuer made for another client is refused', async ({ page, site }) => {
  const { oidc } = await call<{ oidc: { issuer: string; authorizationEndpoint: string; tokenEndpoint: string } }>(site.url, 'GET', '/api/login', undefined, '');
  const verifier = 'v'.repeat(43);
  const back = 'http://127.0.0.1:9/another';
  await page.route(`${back}*`, (route) => route.fulfill({ body: 'back' }));
  await page.goto(`${oidc.authorizationEndpoint}?${String(new URLSearchParams({
    response_type: 'code', client_id: 'another', redirect_uri: back, scope: 'openid', state: 's', nonce: 'n',
    code_challenge: createHash('sha256').update(verifier).digest('base64url'), code_challenge_method: 'S256',
  }))}`);
  await page.getByLabel('Name').fill('ada');
  await page.getByLabel('Password').fill('secret');
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.waitForURL(`${back}?**`);
  const code = new URL(page.url()).searchParams.get('code') ?? '';
  const response = await fetch(oidc.tokenEndpoint, {
    method: 'POST',
    body: new URLSearchParams({ grant_type: 'authorization_code', code, redirect_uri: back, client_id: 'another', code_verifier: verifier }),
  });
  const { id_token: token } = (await response.json()) as { id_token: string };
  expect(token.split('.')).toHaveLength(3);
  await expect(call(site.url, 'GET', '/api/jobs', undefined, token)).rejects.toThrow('401');
});

test('a token is renewed before it ends, also with a new signing key, until the issuer refuses', async ({ page, site, faults }) => {
  test.setTimeout(90_000);
  await page.clock.install();
  const { oidc } = await call<{ oidc: { issuer: string } }>(site.url, 'GET', '/api/login', undefined, '');
  let renewed = 0;
  page.on('response', (response) => void (response.url().endsWith('/token') && response.ok() && renewed++));
  await page.goto('/schedules');
  await logIn(page, BRIEF);
  await expect(nightly(page)).toBeVisible();
  const renews = async () => {
    const before = renewed;
    await page.clock.fastForward(1000 * BRIEF_S); // for the page, but not for the gateway, the token ends
    await expect.poll(() => renewed - before).toBeGreaterThan(0); // the page polls
    await page.reload();
    await expect(nightly(page)).toBeVisible();
  };
  await renews();
  await fetch(`${oidc.issuer}/rotate`);
  await renews();
  expect(faults).toEqual([]);

  await page.route('**/token', (route) =>
    route.fulfill({ status: 400, json: { error: 'invalid_grant' }, headers: { 'Access-Control-Allow-Origin': '*' } }),
  );
  await page.clock.fastForward(1000 * BRIEF_S);
  await expect(atIssuer(page)).toBeVisible({ timeout: 4 * BRIEF_S * 1000 }); // once it has ended for the gateway, too
  expect(faults.splice(0).length).toBeGreaterThan(0); // the issuer's 400 and the gateway's 401
});
