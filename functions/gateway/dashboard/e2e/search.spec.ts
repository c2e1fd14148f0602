import { accessible, expect, fits, simulation, test } from './fixtures';

test('a search is typed with suggestions, and stands in the address', async ({ page, site, open, api, unique }) => {
  const tagged = (tag: string) => ({ ...simulation({ type: 'FAIL', errorCode: 'SEARCH.IT', retryable: false }), tags: [tag] });
  await Promise.all([`${unique}-1`, `${unique}-2`, 'other'].map((tag) => api('POST', '/api/jobs?wait=30s', tagged(tag))));
  const box = page.getByRole('combobox', { name: 'Search jobs' });
  const rows = page.getByRole('row').filter({ hasText: 'SIMULATION' });
  await open('/jobs');
  await expect(rows.first()).toBeVisible();
  await page.keyboard.press('f');
  await expect(box).toBeFocused();
  await page.keyboard.type('stat');
  await accessible(page, 'suggestions');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await expect(box).toHaveValue('status:');
  await page.getByRole('option', { name: 'status:failed' }).click();
  await expect(page).toHaveURL(`${site.url}/jobs?status=FAILED`);
  await expect(box).toBeFocused();
  await page.keyboard.type(`tag:${unique}-*`);
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(`${site.url}/jobs?status=FAILED&tag=${unique}-*`);
  await expect(rows).toHaveCount(2);
  await box.fill(`${unique}-1`); // a part of a tag
  await box.press('Enter');
  await expect(rows).toHaveCount(1);
  await page.goBack();
  await expect(box).toHaveValue(`status:failed tag:${unique}-*`);
  await page.getByRole('button', { name: 'FAILED', exact: true }).click();
  await expect(box).toHaveValue(`tag:${unique}-*`);
  await page.setViewportSize({ width: 360, height: 740 });
  await box.focus();
  await fits(page);
  await accessible(page, 'phone');
});

test('a value in the payload finds a job, and its paths are suggested, unless payloads are sealed', async ({ page, open, api, unique, site, faults }) => {
  const { jobId } = await api<{ jobId: string }>('POST', '/api/jobs', { jobType: 'INVOICE', queue: 'pull', payload: { order: { id: unique, cents: 1250.0 } }, delayMs: 3_600_000 });
  const box = page.getByRole('combobox', { name: 'Search jobs' });
  const rows = page.getByRole('row').filter({ hasText: 'INVOICE' });
  await open('/jobs');
  await box.fill('payload:st');
  await expect(page.getByRole('option', { name: 'payload:steps[0].message:' })).toBeVisible();
  await accessible(page, 'paths');
  await page.getByRole('option', { name: 'payload:steps[0].message:' }).click();
  await expect(box).toHaveValue('payload:steps[0].message:');
  for (const [typed, query] of [[`order.id:${unique}`, `order.id%3A${unique}`], [`order.id:"${unique}"`, `order.id%3A${unique}`]] as const) {
    await box.fill(`payload:${typed}`);
    await box.press('Enter');
    await expect(page).toHaveURL(`${site.url}/jobs?payload=${query}`);
    await expect(rows).toHaveCount(1);
    await expect(rows.locator(`a[href="/jobs/${jobId}"]`).first()).toBeVisible();
  }
  await box.fill('payload:order.id');
  await box.press('Enter');
  await expect(page.getByText(/must be a path and a value/).first()).toBeVisible();

  await page.route('**/api/me', async (route) => route.fulfill({ json: { ...(await (await route.fetch()).json()), sealing: true } }));
  await open('/jobs');
  await box.fill('pa');
  await expect(page.getByRole('combobox', { name: 'Search jobs' })).toHaveValue('pa');
  await expect(page.getByRole('option', { name: /^payload:/ })).toHaveCount(0);
  expect(faults.splice(0).every((fault) => fault.includes('status of 400'))).toBe(true);
});

test('the jobs of yesterday are two clicks away, and those between two times', async ({ page, open, api, unique, site }) => {
  await api('POST', '/api/jobs?wait=30s', { ...simulation({ type: 'LOG', message: 'x' }), tags: [unique] });
  const accepted = page.getByRole('button', { name: /^Accepted:/ });
  const rows = page.getByRole('row').filter({ hasText: 'SIMULATION' });
  await open(`/jobs?tag=${unique}`);
  await expect(rows).toHaveCount(1);
  await accepted.click();
  await page.getByRole('button', { name: 'Yesterday' }).click();
  await expect(page).toHaveURL(`${site.url}/jobs?tag=${unique}&since=yesterday`);
  await expect(page.getByText('No job matches')).toBeVisible();
  await accepted.click();
  await page.getByLabel('From').fill('2020-01-01T00:00');
  await page.getByLabel('To').fill('2020-01-02T00:00');
  await accessible(page, 'times');
  await page.getByRole('button', { name: 'Apply' }).click();
  await expect(accepted).toContainText('from 01 Jan 2020, 00:00 to 02 Jan 2020, 00:00');
  await expect(page.getByText('No job matches')).toBeVisible();
  await accepted.click();
  await page.getByRole('button', { name: 'Today' }).click();
  await expect(rows).toHaveCount(1);
});

test('a search goes on by itself until it finds a job, and shows how far it is', async ({ page, open, site }) => {
  let asked = 0;
  await page.route(({ pathname, searchParams }) => pathname === '/api/jobs' && searchParams.get('tag') === 'rare', async (route) => {
    const { jobs } = (await (await fetch(`${site.url}/api/jobs?limit=1`, { headers: { Authorization: `Bearer ${site.acme.key}` } })).json()) as { jobs: object[] };
    const cursor = new URL(route.request().url()).searchParams.get('cursor');
    asked += cursor === null ? 0 : 1;
    const found = cursor === 'b';
    await route.fulfill({ json: { jobs: found ? jobs : [], nextCursor: cursor === null ? 'a' : 'b', searchedTo: '2026-11-27T22:10:00Z' } });
  });
  await open('/jobs?tag=rare');
  await expect(page.getByRole('row').filter({ hasText: 'SIMULATION' })).toHaveCount(1);
  expect(asked).toBe(2);
  await expect(page.getByText(/1 job, searched back to 27 Nov/)).toBeVisible();
  await expect(page.getByRole('button', { name: 'Keep searching' })).toBeVisible();
  await accessible(page);
});

test('all times are shown relative, by the local clock or in UTC', async ({ page, open, api }) => {
  await api('POST', '/api/jobs?wait=30s', simulation({ type: 'LOG', message: 'x' }));
  const time = page.getByRole('row').locator('time').first();
  await open('/jobs');
  await expect(time).toHaveText(/ago|just now/);
  await page.getByRole('banner').getByRole('button', { name: 'acme' }).click();
  await page.getByRole('group', { name: 'How times are shown' }).getByRole('button', { name: 'UTC' }).click();
  const inUtc = async () => {
    const at = new Date((await time.getAttribute('datetime')) ?? '');
    await expect(time).toContainText(at.toISOString().slice(11, 19));
  };
  await inUtc();
  await accessible(page);
  await page.reload();
  await inUtc();
});

test('a page that the gateway slows down shows that, and waits as long as it names', async ({ page, open, site, faults }) => {
  await page.clock.install();
  await open('/workers', site.admin);
  await expect(page.getByText('Last heartbeat').first()).toBeVisible();
  let refused = 0;
  await page.route('**/api/**', (route) => {
    refused++;
    return route.fulfill({ status: 429, headers: { 'Retry-After': '30' }, json: { errorCode: 'API.RATE_LIMITED', message: 'too many' } });
  });
  const slowed = page.getByRole('button', { name: /^Slowed down/ });
  await expect.poll(() => page.clock.runFor(2000).then(() => slowed.isVisible())).toBe(true);
  await page.setViewportSize({ width: 360, height: 740 });
  await fits(page);
  await expect(page.getByRole('banner').getByRole('button', { name: 'Installation' })).toBeInViewport({ ratio: 1 });
  await page.clock.runFor(1000); // what was asked at the same time is refused, too
  const before = refused;
  await page.clock.runFor(20_000);
  expect(refused).toBe(before);
  await accessible(page);
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  await expect.poll(() => page.clock.runFor(5000).then(() => page.getByRole('button', { name: /^Live/ }).isVisible())).toBe(true);
  expect(faults.splice(0).every((fault) => fault.includes('status of 429'))).toBe(true);
});
