import { type Page, test as base, expect } from '@playwright/test';
import axe from 'axe-core';
import { randomBytes } from 'node:crypto';
import { call, type Key } from './installation';
import type { Seeded } from './seed';

/** Site is the installation started by setup.ts, with the keys of two owners. */
export interface Site {
  url: string;
  broker: string; // of Kafka
  admin: string;
  acme: Key; // admin of its owner
  operator: Key;
  reader: Key;
  other: Key; // admin of another owner
  seeded: Seeded; // of an owner whose data are as those of an installation in use
}

interface Fixtures {
  site: Site;
  /** api sends a request as acme, unless another key is given. */
  api: <T = unknown>(method: string, path: string, body?: unknown, key?: string) => Promise<T>;
  /** open opens an address as a user who has logged in with a key. */
  open: (path: string, key?: string) => Promise<void>;
  /** unique is a name that no other test, and no other run of this test, uses. */
  unique: string;
  /** faults are the errors and warnings of the browser; a test that expects one removes it. */
  faults: string[];
}

export const test = base.extend<Fixtures>({
  site: async ({}, use) => use(JSON.parse(process.env['DASHBOARD_SITE'] ?? '') as Site),
  baseURL: async ({ site }, use) => use(site.url),
  api: async ({ site }, use) =>
    use((method, path, body, key = site.acme.key) => call(site.url, method, path, body, key)),
  open: async ({ page, site }, use) =>
    use(async (path, key = site.acme.key) => {
      await page.addInitScript((text) => sessionStorage.setItem('jobweaver.key', text), key);
      await page.goto(path);
    }),
  unique: async ({}, use) => use(`t${randomBytes(5).toString('hex')}`),
  faults: [
    async ({ page }, use) => {
      const faults: string[] = [];
      watch(page, faults);
      await use(faults);
      await page.unrouteAll({ behavior: 'ignoreErrors' }); // a response that a test changes may be under way, and end with the page
      expect(faults, 'what the browser complained of').toEqual([]);
    },
    { auto: true },
  ],
});

/** watch collects the errors and warnings of a browser, including violations of the Content-Security-Policy. */
export function watch(page: Page, faults: string[]): void {
  page.on('console', (message) => {
    if (['error', 'warning', 'assert'].includes(message.type())) {
      faults.push(`${message.type()}: ${message.text()} (${message.location().url})`);
    }
  });
  page.on('pageerror', (error) => faults.push(`uncaught: ${error.message}`));
}

const TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

/** accessible fails if axe finds a problem on the page, once its heading is shown. Without rules it tries all. */
export async function accessible(page: Page, look = '', rules: string[] = []): Promise<void> {
  await expect(page.locator('h1')).toBeAttached(); // a dialog hides it
  if (!(await page.evaluate(() => 'axe' in window))) {
    await page.evaluate(axe.source);
  }
  const runOnly = rules.length > 0 ? { type: 'rule' as const, values: rules } : { type: 'tag' as const, values: TAGS };
  const run = (options: axe.RunOptions) => (window as unknown as { axe: typeof axe }).axe.run(document, options);
  const { violations } = await page.evaluate(run, { runOnly, resultTypes: ['violations' as const] });
  const found = violations.map((v) => `${v.id}: ${v.help}\n${v.nodes.map((n) => `  ${n.target.join(' ')}\n  ${n.html}\n  ${n.failureSummary ?? ''}`).join('\n')}`);
  expect(found, `axe on ${page.url()} ${look}`).toEqual([]);
}

/** fits fails if the page is wider than the window, and names the elements that stick out. */
export async function fits(page: Page): Promise<void> {
  const wide = () =>
    page.evaluate(() => {
      const { scrollWidth, clientWidth } = document.documentElement;
      const out = [...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right > clientWidth + 1);
      return scrollWidth <= clientWidth ? [] : [`${scrollWidth} > ${clientWidth}`, ...out.map((e) => e.outerHTML.slice(0, 120))];
    });
  await expect.poll(wide, `what is too wide on ${page.url()}`).toEqual([]); // a resized window is laid out again first
}

/** answered removes an expected error of the API from the faults. */
export function answered(faults: string[], status: number): void {
  expect(faults.splice(0)).toEqual([expect.stringContaining(`the server responded with a status of ${status}`)]);
}

/** simulation is a job with these steps. */
export const simulation = (...steps: object[]) => ({ jobType: 'SIMULATION', payload: { steps } });

export { call, expect };
