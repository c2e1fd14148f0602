import { expect, it } from 'vitest';
import { stateOf } from './state';

const now = new Date('2026-11-23T08:00:00Z');

it('is revoked, whenever it would have expired', () => {
  expect(stateOf({ revokedAt: '2026-11-23T07:00:00Z', expiresAt: '2026-11-22T07:00:00Z' }, now)).toBe('revoked');
});
it('is over at the instant of its end', () => {
  expect(stateOf({ revokedAt: null, expiresAt: '2026-11-23T08:00:00Z' }, now)).toBe('expired');
  expect(stateOf({ revokedAt: null, expiresAt: '2026-11-23T08:00:01Z' }, now)).toBe('live');
  expect(stateOf({ revokedAt: null, expiresAt: null }, now)).toBe('live');
});
