import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { throttle } from './throttle';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it('runs at once, then once in the interval, and never loses the last call', () => {
  let runs = 0;
  const { call } = throttle(1000, () => runs++);
  call();
  call();
  call();
  expect(runs).toBe(1);
  vi.advanceTimersByTime(1000);
  expect(runs).toBe(2);
  vi.advanceTimersByTime(5000);
  expect(runs).toBe(2);
});
it('runs no more once it is stopped', () => {
  let runs = 0;
  const { call, stop } = throttle(1000, () => runs++);
  call();
  call();
  stop();
  vi.advanceTimersByTime(5000);
  expect(runs).toBe(1);
});
