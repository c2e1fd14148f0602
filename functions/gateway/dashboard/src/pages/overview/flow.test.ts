import { expect, it } from 'vitest';
import { sum } from './flow';

const flows = [
  { at: '2026-11-23T08:00:00Z', accepted: 3, completed: 2, failed: 1, cancelled: 0 },
  { at: '2026-11-23T08:01:00Z', accepted: 4, completed: 4, failed: 0, cancelled: 1 },
];

it('adds spans up', () => {
  expect(sum(flows)).toEqual({ accepted: 7, completed: 6, failed: 1, cancelled: 1 });
  expect(sum([])).toEqual({ accepted: 0, completed: 0, failed: 0, cancelled: 0 });
});
