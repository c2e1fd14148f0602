import { expect, it } from 'vitest';
import { filtersOf } from './filters';

it('keeps what is a filter of the log, without white space and empty values', () => {
  expect(filtersOf({ actor: ' key:abc ', action: '', other: 'x', jobId: ['a', 'b'] })).toEqual({ actor: 'key:abc' });
});
