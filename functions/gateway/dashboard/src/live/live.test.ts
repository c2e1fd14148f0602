import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { isSlowed, noteLimit } from './live';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  vi.runAllTimers();
  vi.useRealTimers();
});

it('sends no request until the gateway takes one again, whatever shorter times it names meanwhile', () => {
  noteLimit(3);
  noteLimit(1);
  vi.advanceTimersByTime(2_900);
  expect(isSlowed()).toBe(true);
  vi.advanceTimersByTime(100);
  expect(isSlowed()).toBe(false);
});
it('waits for longer if the gateway names a longer time', () => {
  noteLimit(1);
  noteLimit(5);
  vi.advanceTimersByTime(4_900);
  expect(isSlowed()).toBe(true);
  vi.advanceTimersByTime(100);
  expect(isSlowed()).toBe(false);
});
