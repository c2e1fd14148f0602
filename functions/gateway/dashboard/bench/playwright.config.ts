import { defineConfig } from '@playwright/test';
import tests from '../e2e/playwright.config';

// One after the other: the measurement is of one user on an idle machine.
export default defineConfig({ ...tests, testDir: '.', testMatch: '*.bench.ts', globalSetup: [], fullyParallel: false, workers: 1, timeout: 3_600_000, globalTimeout: 0 });
