import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { clock, duration, fromLocalInput, instant, midnight, moment, relative, toLocalInput } from './time';
import { setTimes } from './times';

describe('duration', () => {
  it.each([
    [0, '0 ms'],
    [1.26, '1.3 ms'],
    [850, '850 ms'],
    [2415, '2.41 s'],
    [9999, '9.99 s'],
    [59_900, '59 s'],
    [60_000, '1 min'],
    [192_000, '3 min 12 s'],
    [7_500_000, '2 h 5 min'],
    [273_600_000, '3 d 4 h'],
    [-850, '-850 ms'],
  ])('shows %d ms as %s', (ms, text) => expect(duration(ms)).toBe(text));
});

describe('relative', () => {
  const now = new Date('2026-11-23T08:00:00Z');
  it.each([
    ['2026-11-23T08:00:00.400Z', 'just now'],
    ['2026-11-23T07:59:48Z', '12 s ago'],
    ['2026-11-23T08:03:10Z', 'in 3 min'],
    ['2026-11-23T05:59:00Z', '2 h ago'],
    ['2026-11-18T08:00:00Z', '5 d ago'],
  ])('shows %s as %s', (at, text) => expect(relative(at, now)).toBe(text));
});

describe('the value of a datetime-local input', () => {
  it('names the instant that it was made of', () => {
    const at = new Date('2026-11-23T08:15:30Z');
    expect(fromLocalInput(toLocalInput(at))).toBe(at.toISOString());
  });
  it('is null where there is none', () => {
    expect(fromLocalInput('')).toBeNull();
    expect(fromLocalInput('soon')).toBeNull();
  });
});

describe('an instant', () => {
  const at = '2026-11-29T23:30:05.250Z';
  const now = new Date('2026-11-30T08:00:00Z');
  beforeEach(() => vi.stubEnv('TZ', 'Asia/Tokyo')); // 9 h before UTC
  afterEach(() => {
    setTimes('relative');
    vi.unstubAllEnvs();
  });
  it('is shown in UTC if the user has chosen that', () => {
    setTimes('utc');
    expect(instant(at)).toBe('29 Nov 2026, 23:30:05.250 UTC');
    expect(clock(at)).toBe('23:30:05.250');
    expect(moment(at, now)).toBe('29 Nov, 23:30:05');
    expect(moment('2025-11-29T23:30:05Z', now)).toBe('29 Nov 2025, 23:30:05');
  });
  it('is that of an input, in both zones', () => {
    for (const times of ['local', 'utc'] as const) {
      setTimes(times);
      expect(fromLocalInput(toLocalInput(new Date(at)))).toBe('2026-11-29T23:30:05.000Z');
    }
    expect(toLocalInput(new Date(at))).toBe('2026-11-29T23:30:05');
  });
  it('has the midnight of its day and of the day before, in both zones', () => {
    setTimes('utc');
    expect(midnight(new Date(at), 0).toISOString()).toBe('2026-11-29T00:00:00.000Z');
    expect(midnight(new Date(at), 1).toISOString()).toBe('2026-11-28T00:00:00.000Z');
    setTimes('local');
    expect(midnight(new Date(at), 1).toISOString()).toBe('2026-11-28T15:00:00.000Z');
  });
});
