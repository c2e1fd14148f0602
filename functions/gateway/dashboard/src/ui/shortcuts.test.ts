import { expect, it } from 'vitest';
import { next } from './shortcuts';

const known = ['?', 'g j', 'g o', 'c'];

it('a sequence goes on while it leads somewhere', () => {
  expect(next('', 'g', known)).toBe('g');
  expect(next('g', 'j', known)).toBe('g j');
});
it('a key that leads nowhere starts anew', () => {
  expect(next('g', 'c', known)).toBe('c');
  expect(next('g', 'g', known)).toBe('g');
  expect(next('g', 'x', known)).toBe('');
});
