import { accessible, answered, expect, fits, simulation, test } from './fixtures';

const failing = (tag: string) => ({ ...simulation({ type: 'FAIL', errorCode: 'OWNERS', retryable: false }), tags: [tag] });

test('an admin of the installation sees what all owners have, and acts for one of them', async ({ page, site, open, unique }) => {
  const bar = page.getByRole('banner');
  const main = page.getByRole('main');
  const shows = (owner: string) => bar.getByRole('button', { name: `Owner: ${owner}` });
  const find = async (text: string) => {
    await bar.getByRole('button', { name: /^Owner:/ }).click();
    await bar.getByLabel('Owner to act for').fill(text);
    await expect(bar.getByRole('option').filter({ hasText: text }).first()).toBeVisible(); // what Enter chooses
  };
  await open('/dead', site.admin);
  await expect(main.getByText('DEMO.BROKEN').first()).toBeVisible(); // of acme
  await expect(shows('All owners')).toBeVisible();
  await find('ACM');
  await accessible(page, 'with owners');
  await bar.getByRole('option', { name: 'acme', exact: true }).click();
  await expect(page).toHaveURL(`${site.url}/dead?as=acme`);
  await page.reload();
  await expect(main.getByText('DEMO.BROKEN').first()).toBeVisible();
  await expect(shows('acme')).toBeVisible();
  await accessible(page, 'acting for one');

  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Jobs', exact: true }).click();
  await expect(page).toHaveURL(`${site.url}/jobs?as=acme`);
  await find(`${unique} & Söhne`);
  await page.keyboard.press('Enter'); // an owner that is not known yet
  await expect(main.getByText(`${unique} & Söhne has no jobs`)).toBeVisible();
  await page.setViewportSize({ width: 360, height: 740 });
  await fits(page);
  await accessible(page, 'of others, on a phone');
  await main.getByRole('button', { name: /^\S+ \d+$/ }).first().click();
  await expect(page.getByRole('row').filter({ hasText: 'SIMULATION' }).first()).toBeVisible();
  await page.goBack();
  await expect(main.getByText(`${unique} & Söhne has no jobs`)).toBeVisible();
  await main.getByRole('button', { name: 'Show all owners' }).click();
  await expect(page).toHaveURL(`${site.url}/jobs`);
  await expect(shows('All owners')).toBeVisible();
});

test('a link shows the same to another admin, and each count leads to as many jobs', async ({ page, site, open, api, unique, faults }) => {
  const { key } = await api<{ key: string }>('POST', '/api/keys', { name: unique, ownerId: unique, roles: ['admin'] }, site.admin);
  const jobs = await Promise.all([1, 2, 3].map(() => api<{ jobId: string }>('POST', '/api/jobs?wait=30s', failing(unique), key)));
  await open(`/?as=${unique}`, site.admin);
  await page.getByRole('link', { name: /FAILED\s*3\b|3\s*FAILED/ }).first().click();
  await expect(page.getByRole('row').filter({ hasText: 'SIMULATION' })).toHaveCount(3);
  await page.locator(`.job-link[href="/jobs/${jobs[0]?.jobId}?as=${unique}"]`).click();
  await expect(page.getByText('OWNERS').first()).toBeVisible();
  await page.goto(`${site.url}/jobs/${jobs[1]?.jobId}`); // without the owner it is found, too
  await expect(page.getByText('OWNERS').first()).toBeVisible();

  await open(`/jobs?as=${unique}`, site.other.key); // a key of another owner may not act for it
  await expect(page.getByText('only an admin of the installation acts for another owner')).toBeVisible();
  answered(faults, 403);
  await page.getByRole('button', { name: 'Try again' }).click();
  await expect(page.getByRole('heading', { name: 'Jobs', level: 1 })).toBeVisible();
  await expect(page).toHaveURL(`${site.url}/jobs`);
});

test('without authentication, the page acts for an owner in the same way', async ({ page, site, api, unique }) => {
  await page.route('**/api/login', (route) => route.fulfill({ json: { auth: 'off', oidc: null } }));
  await page.route(/\/api\/(?!login)/, (route) => route.continue({ headers: { ...route.request().headers(), authorization: `Bearer ${site.admin}` } }));
  const { key } = await api<{ key: string }>('POST', '/api/keys', { name: unique, ownerId: unique, roles: ['admin'] }, site.admin);
  await api('POST', '/api/jobs?wait=30s', failing(unique), key);
  const bar = page.getByRole('banner');
  await page.goto('/jobs');
  await bar.getByRole('button', { name: 'Owner: All owners' }).click();
  await bar.getByLabel('Owner to act for').fill(unique);
  await bar.getByRole('option', { name: unique, exact: true }).click();
  await expect(page).toHaveURL(`${site.url}/jobs?as=${unique}`);
  await expect(page.getByRole('row').filter({ hasText: 'SIMULATION' })).toHaveCount(1);

  await page.route('**/api/owners**', (route) => route.fulfill({ json: { owners: [], more: false } }));
  await page.goto('/jobs'); // an installation without owners has nothing to switch
  await expect(page.getByRole('row').filter({ hasText: 'SIMULATION' }).first()).toBeVisible();
  await expect(bar.getByRole('button', { name: /^Owner:/ })).toHaveCount(0);
});
