import { expect, it } from 'vitest';
import { filtersOf, withTime } from './filters';

it('keeps what is a filter of the log, without white space and empty values', () => {
  expect(filtersOf({ actor: ' key:abc ', action: '', other: 'x', jobId: ['a', 'b'] })).toEqual({ actor: 'key:abc' });
});
it('sets and removes a time', () => {
  const since = '2026-11-24T01:30:00.000Z';
  expect(withTime({ actor: 'key:a' }, 'since', since)).toEqual({ actor: 'key:a', since });
  expect(withTime({ actor: 'key:a', since }, 'since', null)).toEqual({ actor: 'key:a' });
});
