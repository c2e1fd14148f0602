import { expect, it } from 'vitest';
import { isOver } from './session';

const minute = 60_000;

it('a session ends after 30 minutes without input, and after 12 hours in any case', () => {
  expect(isOver(0, 0, 29 * minute)).toBe(false);
  expect(isOver(0, 0, 30 * minute)).toBe(true);
  expect(isOver(0, 719 * minute, 719 * minute)).toBe(false);
  expect(isOver(0, 719 * minute, 720 * minute)).toBe(true);
});
