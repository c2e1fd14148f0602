import { describe, expect, it } from 'vitest';
import { bytes, compact, count, perSecond, plural, share } from './number';

describe('numbers', () => {
  it('groups whole numbers', () => expect(count(1234567)).toBe('1,234,567'));
  it('shortens only what is long', () => {
    expect(compact(9999)).toBe('9,999');
    expect(compact(12345)).toBe('12.3K');
    expect(compact(10_000_000)).toBe('10M');
  });
  it('gives rates their unit and as many digits as they need', () => {
    expect(perSecond(0)).toBe('0/s');
    expect(perSecond(0.001)).toBe('<0.01/s');
    expect(perSecond(0.044)).toBe('0.04/s');
    expect(perSecond(7.26)).toBe('7.3/s');
    expect(perSecond(1240.4)).toBe('1,240/s');
  });
  it('never rounds a share to nothing or to all', () => {
    expect(share(0, 0)).toBe('0 %');
    expect(share(1, 100_000)).toBe('<0.1 %');
    expect(share(99_999, 100_000)).toBe('>99.9 %');
    expect(share(42, 1000)).toBe('4.2 %');
    expect(share(7, 7)).toBe('100 %');
  });
  it('names sizes in binary units', () => {
    expect(bytes(17)).toBe('17 B');
    expect(bytes(1536)).toBe('1.5 KiB');
    expect(bytes(512 * 1024)).toBe('512 KiB');
    expect(bytes(3 * 1024 * 1024)).toBe('3.0 MiB');
  });
  it('counts things', () => {
    expect(plural(1, 'job')).toBe('1 job');
    expect(plural(0, 'job')).toBe('0 jobs');
    expect(plural(2, 'delivery', 'deliveries')).toBe('2 deliveries');
  });
});
