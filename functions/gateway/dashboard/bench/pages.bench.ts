import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { loadavg } from 'node:os';
import { join, resolve } from 'node:path';
import { type BrowserContext, expect, type Page, type Request, test } from '@playwright/test';
import { Installation } from '../e2e/installation';

const JOBS = Number(process.env['JOBS'] ?? 1_000_000);
const ROUNDS = 10;
const DAYS = '0.05'; // the age of the oldest copy: the shorter, the more copies are newer than what was submitted before them
const RARE = 20; // jobs of a type of which the newest tens of thousands have none
const root = resolve(import.meta.dirname, '../../../..');

interface Job {
  jobId: string;
  traceId: string;
}

/** Answered is a request of a page, with the response time of the gateway in ms. */
interface Answered {
  of: string;
  path: string;
  took: number;
}

const simulation = (...steps: object[]) => ({ jobType: 'SIMULATION', payload: { steps } });

/**
 * fill runs some jobs of each kind, and copies those that have ended until there are JOBS. The rare ones have not ended: all jobs
 * that were copied after them, as seen by their ids, are newer.
 */
async function fill(installation: Installation): Promise<Job> {
  const post = (body: object, key?: string) => installation.call<Job>('POST', '/api/jobs?wait=30s', body, key);
  const owners = [await installation.key('acme', ['admin']), await installation.key('globex', ['admin'])];
  for (let i = 0; i < 40; i++) {
    await post({ ...simulation({ type: 'LOG', message: `line ${i}` }), tags: [`customer-${i}`] }, owners[i % 2]?.key);
  }
  const failed = await post({ ...simulation({ type: 'FAIL', errorCode: 'BENCH.BROKEN', retryable: false }), orderingKey: 'bench' });
  await post({ ...simulation({ type: 'LOG', message: 'rare' }), queue: 'bulk' });
  for (let i = 0; i < 30; i++) {
    await post(simulation({ type: 'FAIL', errorCode: `BENCH.CODE_${i}`, retryable: false }));
  }
  const rare = Array.from({ length: RARE }, (_, i) => ({ jobType: 'INVOICE', queue: 'rare', payload: { order: { id: `A-${i}` } }, delayMs: 86_400_000 }));
  const { results } = await installation.call<{ results: { status: number }[] }>('POST', '/api/jobs/batch', { jobs: rare });
  expect(results.filter(({ status }) => status >= 400)).toEqual([]);
  const password = (await readFile(join(installation.dir, 'postgres/password'), 'utf8')).trim();
  const port = (await readFile(join(installation.dir, 'postgres/data/postmaster.pid'), 'utf8')).split('\n')[3];
  const database = `postgres://postgres:${password}@127.0.0.1:${port}/jobweaver_api`;
  execFileSync('go', ['run', './local/load', 'fill', '--database', database, '--jobs', String(JOBS), '--days', DAYS], { cwd: root, stdio: 'inherit' });
  return failed;
}

/** shown waits until the main part of the page has the text, and returns the time from the start of the navigation until it was drawn. */
async function shown(page: Page, text: string): Promise<number> {
  const at = await page.waitForFunction(
    (wanted) => document.querySelector('main')?.innerText.includes(wanted) && performance.now(),
    text,
    { polling: 'raf', timeout: 60_000 },
  );
  return Number(await at.jsonValue());
}

function slowestOf(requests: Answered[]): [string, number[]] {
  const paths = new Map<string, number[]>();
  for (const { path, took } of requests) {
    paths.set(path, [...(paths.get(path) ?? []), took]);
  }
  return [...paths].toSorted(([, a], [, b]) => quantile(b, 0.95) - quantile(a, 0.95))[0] ?? ['', []];
}

function quantile(values: number[], q: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return Math.round(sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? NaN);
}

test('how long the pages of many jobs take', async ({ page }) => {
  const installation = await Installation.start({ QUEUES: 'default,bulk,rare' });
  try {
    const job = await fill(installation);
    const pages: [string, string][] = [
      ['/', 'COMPLETED'],
      ['/jobs', 'SIMULATION'],
      ['/jobs?status=FAILED', 'SIMULATION'],
      ['/jobs?status=RUNNING', 'No job matches'],
      ['/jobs?ownerId=acme&status=COMPLETED', 'SIMULATION'],
      ['/jobs?tag=customer-7', 'SIMULATION'],
      ['/jobs?queue=bulk', 'SIMULATION'],
      ['/jobs?type=INVOICE', 'INVOICE'],
      ['/jobs?payload=order.id:A-7', 'INVOICE'],
      ['/jobs?errorCode=BENCH.BROKEN', 'SIMULATION'],
      ['/jobs?orderingKey=bench', 'SIMULATION'],
      [`/jobs?traceId=${job.traceId}`, 'SIMULATION'],
      ['/jobs?since=1d', 'SIMULATION'],
      ['/jobs?q=customer-7', 'SIMULATION'],
      ['/jobs?q=nothing-has-this', 'No '],
      [`/jobs/${job.jobId}`, 'BENCH.BROKEN'],
      ['/dead', 'BENCH.BROKEN'],
      ['/workers', 'Last heartbeat'],
      ['/schedules', 'No schedule yet'],
      ['/controls', 'Nothing is paused'],
      ['/operations', 'No operation yet'],
      ['/audit', 'key'],
    ];
    await page.addInitScript((key) => sessionStorage.setItem('jobweaver.key', key), installation.admin);
    const requests: Answered[] = [];
    let of = '';
    let open = 0;
    const asks = (request: Request) => /^\/api\/(?!stream)/.test(new URL(request.url()).pathname);
    page.on('request', (request) => (open += asks(request) ? 1 : 0));
    page.on('requestfailed', (request) => (open -= asks(request) ? 1 : 0));
    page.on('requestfinished', (request) => {
      if (asks(request)) {
        const { responseStart, requestStart } = request.timing();
        requests.push({ of, path: new URL(request.url()).pathname.replace(job.jobId, '{jobId}'), took: responseStart - requestStart });
        open--;
      }
    });
    await lists(installation);
    await slow(page.context(), installation.url, installation.admin);
    console.log(`\n${JOBS} jobs, ${ROUNDS} rounds; ms`);
    console.log('page'.padEnd(44), 'drawn p50  max | slowest request, p50, p95');
    for (const [path, text] of pages) {
      of = path;
      const drawn: number[] = [];
      for (let i = 0; i < ROUNDS; i++) {
        await page.goto(installation.url + path);
        drawn.push(await shown(page, text));
        await expect.poll(() => open, { timeout: 60_000 }).toBe(0);
      }
      const [slowest, took] = slowestOf(requests.filter((request) => request.of === path));
      const figures = [quantile(drawn, 0.5), quantile(drawn, 1)].map((ms) => String(ms).padStart(6)).join('');
      console.log(path.replace(job.jobId, '{jobId}').replace(job.traceId, '…').padEnd(44), figures, ' |', slowest, quantile(took, 0.5), quantile(took, 0.95));
    }
    const all = requests.map((request) => request.took);
    console.log(`all ${all.length} requests: p50 ${quantile(all, 0.5)}, p95 ${quantile(all, 0.95)}, max ${quantile(all, 1)}`);
    console.log(`scrolling a list of ${await scroll(page, installation.url)}`);
  } finally {
    await installation.remove();
  }
});

/** lists asks for the main lists and counts, each some hundred times. The lists of rare jobs have to have all of them. */
async function lists(installation: Installation): Promise<void> {
  const asked: [string, number?][] = [
    ['/api/jobs'], ['/api/jobs?status=FAILED'], ['/api/jobs?status=RUNNING', 0], ['/api/jobs?ownerId=acme'], ['/api/jobs?type=SIMULATION'],
    ['/api/jobs?tag=customer-7'], ['/api/jobs?errorCode=BENCH.CODE_7'], ['/api/jobs/dead'], ['/api/jobs/dead/groups'], ['/api/stats'],
    // With more room on the page, a request searches on for a second.
    [`/api/jobs?type=INVOICE&limit=${RARE}`, RARE], [`/api/jobs?queue=rare&limit=${RARE}`, RARE], ['/api/jobs?payload=order.id:A-7&limit=1', 1],
    ['/api/jobs?type=INVOICE&payload=order.id:A-7&limit=1', 1],
  ];
  console.log('request'.padEnd(50), 'p50  p95 of 100; ms, load of the machine');
  for (const [path, rows] of asked) {
    const took: number[] = [];
    for (let i = 0; i < 100; i++) {
      const began = performance.now();
      const found = await walk(installation, path, rows ?? 0);
      took.push(performance.now() - began);
      if (rows !== undefined) {
        expect(found, path).toBe(rows);
      }
    }
    console.log(path.padEnd(50), quantile(took, 0.5), quantile(took, 0.95), loadavg()[0]?.toFixed(1));
  }
}

/** walk asks for a list, and goes on to older jobs until it has enough rows, as the page does. It returns how many it has. */
async function walk(installation: Installation, path: string, enough: number): Promise<number> {
  let found = 0;
  for (let cursor = ''; ; ) {
    const page = await installation.call<{ jobs?: object[]; nextCursor?: string | null }>('GET', path + cursor);
    found += page.jobs?.length ?? 0;
    if (found >= enough || !page.nextCursor) {
      return found;
    }
    cursor = `&cursor=${page.nextCursor}`;
  }
}

/** slow opens pages with a processor a quarter as fast and a line of 10 Mbit, with nothing in the cache. */
async function slow(context: BrowserContext, url: string, key: string): Promise<void> {
  const page = await context.newPage();
  await page.addInitScript((text) => sessionStorage.setItem('jobweaver.key', text), key);
  const browser = await context.newCDPSession(page);
  await browser.send('Emulation.setCPUThrottlingRate', { rate: 4 });
  await browser.send('Network.emulateNetworkConditions', { offline: false, latency: 20, downloadThroughput: 10e6 / 8, uploadThroughput: 10e6 / 8 });
  await browser.send('Network.setCacheDisabled', { cacheDisabled: true });
  for (const [path, text] of [['/', 'COMPLETED'], ['/jobs', 'SIMULATION'], ['/jobs?status=FAILED', 'SIMULATION'], ['/dead', 'BENCH.BROKEN'], ['/workers', 'Last heartbeat']] as const) {
    const drawn: number[] = [];
    for (let i = 0; i < ROUNDS; i++) {
      await page.goto(url + path);
      drawn.push(await shown(page, text));
    }
    const sent = await page.evaluate(() => performance.getEntriesByType('resource').filter(({ name }) => name.includes('/assets/')) as PerformanceResourceTiming[]);
    const size = Math.round(sent.reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0) / 1024);
    console.log(`CPU / 4, 10 Mbit: ${path.padEnd(24)} p50 ${quantile(drawn, 0.5)}, max ${quantile(drawn, 1)} ms; ${sent.length} files of ${size} KiB; load ${loadavg()[0]?.toFixed(1)}`);
  }
  await page.close();
}

/** scroll loads and scrolls through a long list, and returns the length of its longest task. */
async function scroll(page: Page, url: string): Promise<string> {
  await page.goto(`${url}/jobs`);
  await shown(page, 'SIMULATION');
  await page.evaluate(() => {
    const tasks: number[] = [];
    Object.assign(window, { tasks });
    new PerformanceObserver((list) => tasks.push(...list.getEntries().map((entry) => entry.duration))).observe({ type: 'longtask' });
  });
  for (let i = 0; i < 30; i++) {
    const more = page.getByRole('button', { name: 'Load more' });
    if (await more.isVisible()) {
      await more.click();
    }
    await page.mouse.wheel(0, 4000);
    await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
  }
  const rows = await page.getByRole('table').getAttribute('aria-rowcount');
  const tasks = await page.evaluate(() => (window as unknown as { tasks: number[] }).tasks);
  expect(Number(rows)).toBeGreaterThan(100);
  return `${rows} rows: ${tasks.length} tasks above 50 ms, the longest ${Math.round(Math.max(0, ...tasks))} ms`;
}
