import { defineConfig } from '@playwright/test';

// No retries: a test that fails sometimes has found a bug.
export default defineConfig({
  testDir: '.',
  snapshotPathTemplate: '{testDir}/looks/{arg}{ext}',
  outputDir: '../node_modules/.e2e',
  globalSetup: './setup.ts',
  fullyParallel: true,
  workers: 3, // more than processors: some tests mostly wait
  retries: 0,
  forbidOnly: true,
  timeout: 45_000,
  globalTimeout: 900_000, // a run that hangs prints what it waits for
  expect: { timeout: 10_000 },
  reporter: [['list']],
  use: {
    browserName: 'chromium',
    screenshot: 'only-on-failure',
    viewport: { width: 1280, height: 900 },
    locale: 'en-GB',
    timezoneId: 'Europe/Berlin',
    contextOptions: { reducedMotion: 'reduce' },
    launchOptions: {
      executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium', // Debian's; nothing is downloaded
      args: ['--no-sandbox'], // it opens nothing but our own pages, and CI may be root
    },
  },
});
