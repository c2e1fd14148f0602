import { expect, test } from 'vitest';
import { dataFor } from './eventData';

test('the data of an event has what a handler waits for', () => {
  expect(dataFor({})).toEqual({});
  expect(dataFor({ 'order.id': 'A-17', 'order.lines': 3, yes: true, none: null })).toEqual({ order: { id: 'A-17', lines: 3 }, yes: true, none: null });
  expect(dataFor({ a: 1, 'a.b': 2 })).toEqual({ a: { b: 2 } });
});
