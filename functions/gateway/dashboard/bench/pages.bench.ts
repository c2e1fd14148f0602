import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { expect, type Page, type Request, test } from '@playwright/test';
import { Installation } from '../e2e/installation';

const JOBS = Number(process.env['JOBS'] ?? 1_000_000);
const ROUNDS = 10;
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

/** fill runs some jobs of each kind, and copies them until there are JOBS. */
async function fill(installation: Installation): Promise<Job> {
  const post = (body: object) => installation.call<Job>('POST', '/api/jobs?wait=30s', body);
  for (let i = 0; i < 40; i++) {
    await post({ ...simulation({ type: 'LOG', message: `line ${i}` }), tags: [`customer-${i}`], ownerId: i % 2 ? 'acme' : 'globex' });
  }
  const failed = await post({ ...simulation({ type: 'FAIL', errorCode: 'BENCH.BROKEN', retryable: false }), orderingKey: 'bench' });
  await post({ ...simulation({ type: 'LOG', message: 'rare' }), queue: 'bulk' });
  const password = (await readFile(join(installation.dir, 'postgres/password'), 'utf8')).trim();
  const port = (await readFile(join(installation.dir, 'postgres/data/postmaster.pid'), 'utf8')).split('\n')[3];
  const database = `postgres://postgres:${password}@127.0.0.1:${port}/jobweaver_api`;
  execFileSync('go', ['run', './local/load', 'fill', '--database', database, '--jobs', String(JOBS)], { cwd: root, stdio: 'inherit' });
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
  const installation = await Installation.start({ QUEUES: 'default,bulk' });
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
      ['/jobs?type=MAIL', 'No '],
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
