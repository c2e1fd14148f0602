import { expect, it } from 'vitest';
import { may } from './me';

it('a key of admin may do everything', () => {
  expect(may(['admin'], 'admin')).toBe(true);
  expect(may(['admin'], 'submit')).toBe(true);
});
it('a key of operate may read and submit, and make no keys', () => {
  expect(may(['operate'], 'read')).toBe(true);
  expect(may(['operate'], 'submit')).toBe(true);
  expect(may(['operate'], 'admin')).toBe(false);
});
it('a key of submit alone reads nothing', () => {
  expect(may(['submit'], 'read')).toBe(false);
  expect(may(['submit', 'read'], 'read')).toBe(true);
  expect(may([], 'submit')).toBe(false);
});
