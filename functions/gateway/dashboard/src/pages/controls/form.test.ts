import { expect, it } from 'vitest';
import { limit, wrong } from './form';

it('reads an empty field as no limit, and nought as a limit', () => {
  expect(limit('')).toBeNull();
  expect(limit(' ')).toBeNull();
  expect(limit('0')).toBe(0);
});
it('takes a comma for a point', () => {
  expect(limit('0,5')).toBe(0.5);
});
it('refuses what is no number', () => {
  expect(wrong('many')).toContain('must be a number');
  expect(wrong('1e999')).toContain('must be a number');
  expect(wrong('')).toBeUndefined();
  expect(wrong('2.5')).toBeUndefined();
});
