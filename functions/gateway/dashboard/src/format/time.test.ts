import { describe, expect, it } from 'vitest';
import { duration, fromLocalInput, relative, toLocalInput } from './time';

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
