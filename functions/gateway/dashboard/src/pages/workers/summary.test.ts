import { expect, it } from 'vitest';
import { busyOf, summary } from './summary';

const attempts: { startedAt: string | null }[] = [];
const started = { startedAt: '2026-11-23T08:00:00Z' };

it('counts live workers only', () => {
  expect(summary([
    { live: true, slots: 100, busy: 7, attempts },
    { live: true, slots: 20, busy: 0, attempts },
    { live: false, slots: 50, busy: 50, attempts },
  ])).toBe('2 live workers with 120 slots, 7 of them busy.');
});
it('does not say how busy workers are where an owner may not know', () => {
  expect(summary([{ live: true, slots: 1, busy: null, attempts }])).toBe('1 live worker with 1 slot.');
});
it('shows that there are none', () => {
  expect(summary([])).toBe('0 live workers with 0 slots.');
});
it('counts the attempts that run as busy slots, not those that wait for a slot', () => {
  expect(busyOf({ slots: 12, busy: 8, attempts: Array(9).fill(started) })).toBe(9);
  expect(busyOf({ slots: 2, busy: 2, attempts: [started, started, { startedAt: null }] })).toBe(2);
  expect(busyOf({ slots: 12, busy: 8, attempts: [] })).toBe(8); // they started just now
  expect(busyOf({ slots: 12, busy: null, attempts: [started] })).toBeNull();
});
