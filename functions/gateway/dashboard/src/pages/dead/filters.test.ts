import { expect, it } from 'vitest';
import { NO_CODE, readDeadFilters, toDeadQuery, writeDeadFilters } from './filters';

it('keeps the filters in the address', () => {
  for (const search of [{}, { type: 'MAIL', errorCode: 'SMTP', ownerId: 'acme', seen: '24h' }, { noErrorCode: 'true' }]) {
    expect(writeDeadFilters(readDeadFilters(search))).toEqual(search);
  }
});
it('leaves out what the page does not know', () => {
  expect(writeDeadFilters(readDeadFilters({ seen: '3y', page: '7', type: ['A', 'B'] }))).toEqual({});
});
it('asks for the failures since an instant, or without a code', () => {
  const now = new Date('2026-11-29T12:00:00Z');
  expect(toDeadQuery({ type: '', errorCode: NO_CODE, ownerId: '', seen: '1h' }, now)).toEqual({ noErrorCode: true, since: '2026-11-29T11:00:00.000Z' });
  expect(toDeadQuery({ type: 'MAIL', errorCode: 'SMTP', ownerId: 'acme', seen: '' }, now)).toEqual({ type: 'MAIL', errorCode: 'SMTP', ownerId: 'acme' });
});
