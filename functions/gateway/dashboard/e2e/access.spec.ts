import { accessible, answered, expect, simulation, test } from './fixtures';

const login = { name: 'Log in', exact: true };

test('a page asks for a key, refuses a wrong one, and opens where it was asked for', async ({ page, site, faults }) => {
  await page.goto('/schedules');
  await expect(page.getByRole('heading', { name: 'Log in to JobWeaver' })).toBeVisible();
  await accessible(page);
  expect(faults).toEqual([]); // no request was sent without a key
  await page.getByLabel('API key').fill('jw_aaaaaaaaaaaa_wrong');
  await page.getByRole('button', login).click();
  await expect(page.getByText('it is mistyped, revoked or expired')).toBeVisible();
  answered(faults, 401);
  await page.getByLabel('API key').fill(site.acme.key);
  await page.getByRole('button', login).click();
  await expect(page.getByRole('heading', { name: 'Schedules' })).toBeVisible();
  await page.reload();
  await expect(page.getByRole('heading', { name: 'Schedules' })).toBeVisible();
});

test('a key stays in its tab, and is gone after logging out', async ({ page, site, context, open }) => {
  await open('/workers');
  await expect(page.getByRole('heading', { name: 'Workers' })).toBeVisible();
  const stored = await page.evaluate(() => JSON.stringify(localStorage) + document.cookie);
  expect(stored).not.toContain(site.acme.key);
  const other = await context.newPage();
  await other.goto(`${site.url}/workers`);
  await expect(other.getByRole('heading', { name: 'Log in to JobWeaver' })).toBeVisible();
  await page.getByRole('button', { name: 'acme' }).click();
  await page.getByRole('button', { name: 'Log out' }).click();
  await expect(page.getByRole('heading', { name: 'Log in to JobWeaver' })).toBeVisible();
  expect(await page.evaluate(() => sessionStorage.getItem('jobweaver.key'))).toBeNull();
});

test('a key that only reads is offered no action', async ({ page, site, open }) => {
  for (const path of ['/schedules', '/schedules/nightly?ownerId=acme', '/controls', '/workers', '/operations']) {
    await open(path, site.reader.key);
    await expect(page.getByRole('main').getByRole('heading', { level: 1 })).toBeVisible();
    await expect(page.getByText('Loading')).toHaveCount(0);
    const buttons = await page.getByRole('main').getByRole('button').allInnerTexts();
    const actions = buttons.filter((text) => /run|pause|resume|edit|delete|new|cancel|retry|abort|remove|rotate|revoke/i.test(text));
    expect(actions, path).toEqual([]);
  }
  const navigation = page.getByRole('navigation', { name: 'Pages' });
  await expect(navigation.getByRole('link', { name: 'Schedules' })).toBeVisible();
  await expect(navigation.getByRole('link', { name: 'API keys' })).toHaveCount(0);
  await expect(navigation.getByRole('link', { name: 'Audit' })).toHaveCount(0);
  await open('/keys', site.reader.key);
  await expect(page.getByText('This page needs the role admin')).toBeVisible();
});

test('an owner sees nothing of another on any page', async ({ page, site, open, api, unique }) => {
  const theirs = <T>(method: string, path: string, body: object) => api<T>(method, path, body, site.other.key);
  const failing = simulation({ type: 'FAIL', errorCode: 'GLOBEX.ONLY', retryable: false });
  await theirs('POST', '/api/jobs?wait=30s', { ...failing, tags: ['globex-only'] });
  await theirs('POST', '/api/schedules', { name: `of-globex-${unique}`, cron: '@daily', job: { ...failing, jobType: 'INVOICE' } });
  await theirs('POST', '/api/operations', { command: 'cancel', filter: { tag: 'globex-only' } });
  const pages = [
    { path: '/jobs?status=FAILED', mine: 'DEMO.BROKEN', theirs: 'GLOBEX.ONLY' },
    { path: '/dead', mine: 'DEMO.BROKEN', theirs: 'GLOBEX.ONLY' },
    { path: '/schedules', mine: 'nightly', theirs: 'of-globex' },
    { path: '/operations', mine: 'jobs with tag later', theirs: 'jobs with tag globex-only' },
    { path: '/audit?action=schedule.create', mine: 'schedule/nightly', theirs: 'schedule/of-globex' },
    { path: '/keys', mine: 'acme admin', theirs: 'globex admin' },
  ];
  for (const [key, who] of [[site.acme.key, 'mine'], [site.other.key, 'theirs']] as const) {
    for (const each of pages) {
      await open(each.path, key);
      await expect(page.getByRole('main').getByText(each[who]).first(), each.path).toBeVisible();
      await expect(page.getByRole('main').getByText(who === 'mine' ? /globex/i : /acme|nightly|DEMO\.BROKEN|tag later/), each.path).toHaveCount(0);
    }
  }
});

test('limits and running attempts of an owner are on no page of another, and no owner sees rejected records', async ({ page, site, open, api, unique }) => {
  const made = await Promise.all(
    ['a', 'b'].map(async (suffix) => {
      const owner = `${unique}-${suffix}`;
      const { key } = await api<{ key: string }>('POST', '/api/keys', { name: unique, ownerId: owner, roles: ['admin'] }, site.admin);
      await api('PUT', `/api/controls/owner/${owner}`, { paused: false, maxRunning: 7, startsPerSecond: null }, key);
      const { jobId } = await api<{ jobId: string }>('POST', '/api/jobs', simulation({ type: 'SLEEP', durationMs: 600_000 }), key);
      await expect.poll(async () => (await api<{ status: string }>('GET', `/api/jobs/${jobId}`, undefined, key)).status).toBe('RUNNING');
      return { owner, key, jobId };
    }),
  );
  for (const [i, mine] of made.entries()) {
    const theirs = made[1 - i];
    await open('/controls', mine.key);
    await expect(page.getByRole('main').getByText(mine.owner).first()).toBeVisible();
    await expect(page.getByRole('main').getByText(theirs?.owner ?? '')).toHaveCount(0);
    await open('/workers', mine.key);
    await expect(page.locator(`a[href="/jobs/${mine.jobId}"]`).first()).toBeVisible();
    await expect(page.locator(`a[href="/jobs/${theirs?.jobId}"]`)).toHaveCount(0);
    await open('/rejected', mine.key);
    await expect(page.getByRole('heading', { name: 'Rejected records', level: 1 })).toBeVisible();
    await expect(page.getByRole('row')).toHaveCount(0);
    await api('POST', `/api/jobs/${mine.jobId}/cancel`, undefined, mine.key);
  }
});

test('each role is shown the pages and the actions that it may use', async ({ page, site, open, api, unique }) => {
  const reading = ['Overview', 'Jobs', 'Batches', 'Flows', 'Dead letters', 'Schedules', 'Limits and pauses', 'Workers', 'Operations', 'Alerts'];
  const roles = [
    { roles: ['submit'], sees: ['New job'] },
    { roles: ['read'], sees: reading, acts: false },
    { roles: ['read', 'submit'], sees: [...reading, 'New job'], acts: false },
    { roles: ['operate'], sees: [...reading, 'New job'], acts: true },
    { roles: ['admin'], sees: [...reading, 'New job', 'Audit', 'API keys'], acts: true },
  ];
  const navigation = page.getByRole('navigation', { name: 'Pages' });
  for (const { roles: of, sees, acts } of roles) {
    const { key } = await api<{ key: string }>('POST', '/api/keys', { name: unique, ownerId: 'acme', roles: of }, site.admin);
    await open('/dead', key);
    await expect(navigation.getByRole('link')).toHaveCount(sees.length);
    expect((await navigation.getByRole('link').allInnerTexts()).sort(), of.join()).toEqual([...sees].sort());
    if (acts === undefined) {
      await expect(page.getByText('This page needs the role read')).toBeVisible();
      continue;
    }
    await expect(page.getByText('DEMO.BROKEN').first()).toBeVisible();
    expect((await page.getByRole('checkbox').count()) > 0, of.join()).toBe(acts);
  }
  await open('/jobs', site.admin);
  await expect(navigation.getByRole('link', { name: 'Rejected records' })).toBeVisible();
});

test('the policy of the page stops a script and a connection that are none of its own', async ({ page, open, faults }) => {
  await open('/');
  await expect(page.getByRole('heading', { name: 'Overview' })).toBeVisible();
  const ran = await page.evaluate(async () => {
    const script = document.createElement('script');
    script.textContent = 'window.ran = true';
    document.body.append(script);
    const asked = await fetch('https://example.org/').then(() => true, () => false);
    return [(window as unknown as { ran?: boolean }).ran ?? false, asked];
  });
  expect(ran).toEqual([false, false]);
  const refused = faults.splice(0).join('\n'); // which shows that a violation would fail any other test
  expect(refused).toContain('script-src');
  expect(refused).toContain('connect-src');
});

test('a session ends when it is not used, and a late input does not prolong it', async ({ page, open }) => {
  await page.clock.install();
  await open('/workers');
  await expect(page.getByRole('heading', { name: 'Workers' })).toBeVisible();
  await page.clock.fastForward('29:00');
  await page.keyboard.press('Shift');
  await page.clock.fastForward('29:00');
  await expect(page.getByRole('heading', { name: 'Workers' })).toBeVisible();
  await page.clock.fastForward('02:00');
  await expect(page.getByRole('heading', { name: 'Log in to JobWeaver' })).toBeVisible();
  await expect(page.getByText('the session was not used')).toBeVisible();
  expect(await page.evaluate(() => sessionStorage.getItem('jobweaver.key'))).toBeNull();
});

test('a page whose key is revoked asks for another one, and gives the reason', async ({ page, site, open, api, unique, faults }) => {
  const { key, keyId } = await api<{ key: string; keyId: string }>('POST', '/api/keys', { name: unique, roles: ['read'] });
  await open('/workers', key);
  await expect(page.getByText('Last heartbeat').first()).toBeVisible();
  await api('DELETE', `/api/keys/${keyId}`);
  await expect(page.getByText('it was revoked, or has expired')).toBeVisible({ timeout: 30_000 });
  await accessible(page);
  await page.getByLabel('API key').fill(site.acme.key);
  await page.getByRole('button', login).click();
  await expect(page.getByRole('heading', { name: 'Workers' })).toBeVisible();
  expect(faults.splice(0).every((fault) => fault.includes('status of 401'))).toBe(true);
});
