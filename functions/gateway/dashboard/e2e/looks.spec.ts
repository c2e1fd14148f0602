import type { components } from '../src/api/schema.gen';
import { expect, test } from './fixtures';
import { overviewAnswers } from './overview.answers';

type Schemas = components['schemas'];

// Screenshots of pages with fixed responses and a fixed clock, drawn with the DejaVu fonts of Debian.
// `npm run e2e -- looks --update-snapshots` updates them; look at them before they are committed.
const NOW = '2026-11-23T09:00:00.000Z';
const before = (seconds: number) => new Date(Date.parse(NOW) - 1000 * seconds).toISOString();
const id = (n: number) => `01936f3e-5f3e-7cc0-8000-${String(n).padStart(12, '0')}`;

function summary(n: number, change: Partial<Schemas['JobSummary']> = {}): Schemas['JobSummary'] {
  return {
    jobId: id(n), jobType: 'INVOICE', queue: 'default', ownerId: 'globex', status: 'COMPLETED', priority: 0, attempt: 1, retryCount: 0,
    maxRetryCount: 3, createdAt: before(60 * n), updatedAt: before(60 * n - 2), runAt: null, nextRunAt: null, startedAt: before(60 * n - 1),
    finishedAt: before(60 * n - 2), callbackDeadlineAt: null, cancelRequestedAt: null, progress: null, output: null, lastError: null,
    traceId: id(100 + n), tags: ['nightly'], blockedBy: [], version: 3, expiresAt: null, orderingKey: null, fairnessKey: 'globex', ...change,
  };
}

const lastError = { errorCode: 'SMTP.TIMEOUT', message: 'the mail server did not answer within 30 s' };
const failed = { status: 'FAILED' as const, retryCount: 3, attempt: 4, lastError };
const waiting = { status: 'PENDING' as const, attempt: 0, startedAt: null, finishedAt: null };
const jobs = [
  summary(1, { ...waiting, blockedBy: [{ kind: 'dependency', id: id(3) }] }),
  summary(2, { ...waiting, status: 'SCHEDULED', nextRunAt: before(-3600) }),
  summary(3, { status: 'RUNNING', finishedAt: null, progress: { percent: 40, message: 'page 4 of 10' } }),
  summary(4, failed),
  summary(5, { status: 'CANCELLED', tags: [] }),
  summary(6),
];

const move = (to: Schemas['Status'], seconds: number, attempt: number) => ({ at: before(seconds), from: null, to, attempt, by: 'scheduler', reason: null });
const attempt = (n: number, started: number, finished: number): Schemas['AttemptSummary'] => ({
  attempt: n, workerId: 'worker-1', startedAt: before(started), finishedAt: before(finished), outcome: 'failed', errorCode: lastError.errorCode,
  message: lastError.message,
});
const step = (name: string, seconds: number, more: Partial<Schemas['JobStep']>): Schemas['JobStep'] => ({
  name, attempt: 1, savedAt: before(seconds), until: null, tookMs: null, result: null, bytes: 4, ...more,
});
const steps = [step('render', 230, { tookMs: 1834, result: { pages: 4 }, bytes: 11 }), step('cool off', 225, { until: before(165) })];
const wait = (name: string, seconds: number, doneAt: string | null, more: Partial<Schemas['JobWait']>): Schemas['JobWait'] => ({
  name, status: doneAt === null ? 'OPEN' : 'DONE', createdAt: before(seconds), until: null, doneAt, event: null, received: null, job: null, ...more,
});
const waits = [
  wait('paid', 153, before(140), {
    event: { type: 'com.shop.paid', match: { order: 17 } }, received: { id: 'p-1', source: '/shop', type: 'com.shop.paid', data: { order: 17 } },
  }),
  wait('pack', 139, before(130), { job: { jobId: id(6), jobType: 'PACK', status: 'COMPLETED' } }),
];
const job: Schemas['Job'] = {
  ...summary(4, failed), payload: { order: 17 }, after: [], onDependencyFailure: null, schedule: null, callbackUrl: null, runAgainOf: null,
  runAgainAs: null, parentId: null, waits, steps, logs: [], attempts: [attempt(1, 234, 204), attempt(2, 154, 124)],
  history: [
    move('PENDING', 240, 0), move('QUEUED', 235, 1), move('RUNNING', 234, 1), move('RETRYING', 204, 1), move('PENDING', 160, 1),
    move('QUEUED', 155, 2), move('RUNNING', 154, 2), move('FAILED', 124, 2),
  ],
};

const jobType: Schemas['JobTypeInfo'] = {
  name: 'INVOICE', builtin: false, title: null, description: null, schema: null, outputSchema: null, workers: 1, queues: ['default'],
};

const answers: Record<string, unknown> = {
  ...overviewAnswers(NOW),
  '/api/job-types': { jobTypes: [jobType] }, // other tests make queues meanwhile
  '/api/jobs': { jobs, nextCursor: null, searchedTo: null },
  [`/api/jobs/${id(4)}`]: job,
};

const pages = [
  { path: '/', name: 'overview', shows: 'SMTP.TIMEOUT', as: 'admin' }, // only this role sees the lag of topics
  { path: '/jobs', name: 'jobs', shows: '40 %' },
  { path: `/jobs/${id(4)}`, name: 'job', shows: 'SMTP.TIMEOUT' },
  { path: '/dead', name: 'dead', shows: 'SMTP.TIMEOUT' },
  { path: '/controls', name: 'controls', shows: 'initech', as: 'admin' },
];

const sizes = [
  { suffix: '', size: { width: 1280, height: 1300 } },
  { suffix: '-phone', size: { width: 360, height: 740 } }, // the whole page, however long
];

for (const { path, name, shows, as } of pages) {
  test(`the page ${name} looks as before in both themes, wide and on a phone`, async ({ page, open, site }) => {
    await page.clock.setFixedTime(NOW);
    await page.route(
      ({ pathname }) => pathname in answers,
      (route) => {
        const { pathname, searchParams } = new URL(route.request().url());
        return route.fulfill({ json: searchParams.has('after') ? { jobs: [], nextCursor: null } : answers[pathname] });
      },
    );
    await page.route(({ pathname }) => pathname === '/api/stream', (route) => route.fulfill({ contentType: 'text/event-stream', body: ': nothing changes\n\n' }));
    for (const { suffix, size } of sizes) {
      await page.setViewportSize(size);
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        await open(path, as === 'admin' ? site.admin : site.other.key);
        await expect(page.getByRole('main').getByText(shows).first()).toBeVisible();
        await expect(page.getByText('Loading')).toHaveCount(0);
        await expect(page).toHaveScreenshot(`${name}${suffix}-${colorScheme}.png`, { maxDiffPixelRatio: 0.004, fullPage: suffix !== '' });
      }
    }
  });
}
