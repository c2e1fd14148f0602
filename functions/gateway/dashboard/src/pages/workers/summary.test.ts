import { expect, it } from 'vitest';
import { summary } from './summary';

it('counts live workers only', () => {
  expect(summary([
    { live: true, slots: 100, busy: 7 },
    { live: true, slots: 20, busy: 0 },
    { live: false, slots: 50, busy: 50 },
  ])).toBe('2 live workers with 120 slots, 7 of them busy.');
});
it('does not say how busy workers are where an owner may not know', () => {
  expect(summary([{ live: true, slots: 1, busy: null }])).toBe('1 live worker with 1 slot.');
});
it('shows that there are none', () => {
  expect(summary([])).toBe('0 live workers with 0 slots.');
});
