import { expect, it } from 'vitest';
import { inZone, timeZones, withSeconds } from './zone';

it('shows an instant by the clocks of its zone, in summer and in winter', () => {
  expect(inZone('2026-11-24T01:30:00Z', 'Europe/Berlin')).toMatch(/^Tue, 24 Nov 2026, 02:30 (CET|GMT\+1)$/);
  expect(inZone('2026-07-01T01:30:00Z', 'Europe/Berlin')).toMatch(/^Wed, 01 Jul(y)? 2026, 03:30 (CEST|GMT\+2)$/);
  expect(inZone('2026-11-24T01:30:00Z', 'UTC')).toBe('Tue, 24 Nov 2026, 01:30 UTC');
});
it('shows a zone that the browser does not know as UTC', () => {
  expect(inZone('2026-11-24T01:30:00Z', 'Mars/Olympus')).toBe('Tue, 24 Nov 2026, 01:30 UTC');
});
it('offers UTC once, and first', () => {
  expect(timeZones()[0]).toBe('UTC');
  expect(timeZones().filter((zone) => zone === 'UTC')).toHaveLength(1);
  expect(timeZones()).toContain('Europe/Berlin');
});
it('shows seconds where some time has them', () => {
  const times = ['2026-11-24T01:30:00Z', '2026-11-24T01:30:10Z'];
  expect(withSeconds(times)).toBe(true);
  expect(withSeconds(times.slice(0, 1))).toBe(false);
  expect(inZone('2026-11-24T01:30:10Z', 'UTC', true)).toBe('Tue, 24 Nov 2026, 01:30:10 UTC');
});
