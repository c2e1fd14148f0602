import { expect, it } from 'vitest';
import { columns, emptyUntil, labelEvery, LEAST, ticks, type Bucket } from './flowChart';

const bucket = (completed: number, failed = 0, cancelled = 0, accepted = 0): Bucket => ({ at: '2026-11-23T08:00:00Z', accepted, completed, failed, cancelled });

it('stacks what ended, and shows one failure among thousands', () => {
  const [column = []] = columns([bucket(10_000, 1)], 10_001, 200);
  expect(column.map(({ name }) => name)).toEqual(['completed', 'failed']);
  expect(column[1]).toMatchObject({ from: 200 - LEAST, height: LEAST });
});
it('never makes a bar higher than the chart', () => {
  for (const of of [bucket(1, 1, 1), bucket(9998, 1, 1), bucket(0, 0, 10_000), bucket(5000, 5000, 0)]) {
    const [column = []] = columns([of], 10_000, 200);
    const height = column.reduce((sum, part) => sum + part.height, 0);
    expect(height).toBeLessThanOrEqual(200);
    expect(column.every((part) => part.height >= LEAST)).toBe(true);
  }
});
it('draws nothing where nothing ended', () => {
  expect(columns([bucket(0, 0, 0, 7)], 7, 200)).toEqual([[]]);
});
it('knows where the data begin', () => {
  expect(emptyUntil([bucket(0), bucket(0), bucket(0, 0, 0, 1), bucket(0)])).toBe(2);
  expect(emptyUntil([bucket(0), bucket(0)])).toBe(2);
  expect(emptyUntil([])).toBe(0);
});
it('has whole and few marks on the axis, the last at or above the largest number', () => {
  expect(ticks(0)).toEqual([0, 1]);
  expect(ticks(1)).toEqual([0, 1]);
  expect(ticks(3)).toEqual([0, 1, 2, 3]);
  expect(ticks(1300)).toEqual([0, 500, 1000, 1500]);
  for (const most of [7, 99, 12_345, 9_999_999]) {
    const marks = ticks(most);
    expect(marks.length).toBeLessThanOrEqual(6);
    expect(marks.at(-1)).toBeGreaterThanOrEqual(most);
    expect(marks.every(Number.isInteger)).toBe(true);
  }
});
it('labels as many buckets as fit', () => {
  expect(labelEvery(24, 700)).toEqual([0, 3, 6, 9, 12, 15, 18, 21]);
  expect(labelEvery(1, 300)).toEqual([0]);
  expect(labelEvery(30, 0)).toEqual([0]);
});
