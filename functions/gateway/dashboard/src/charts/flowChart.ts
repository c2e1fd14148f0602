import type { Schemas } from '../api/client';
import { zoned } from '../format/time';

export type Bucket = Schemas['Flow'];

/** LEAST is the height of the smallest part of a bar, in pixels: one failure among thousands is visible. */
export const LEAST = 3;

const STACK = ['completed', 'failed', 'cancelled'] as const;

export interface Part {
  name: (typeof STACK)[number];
  from: number; // pixels above the axis
  height: number;
}

/** columns returns the parts of each bar, in pixels, from the axis on. Where parts are raised to LEAST, the largest one gives way. */
export function columns(buckets: readonly Bucket[], top: number, height: number): Part[][] {
  return buckets.map((bucket) => {
    const parts = STACK.filter((name) => bucket[name] > 0).map((name) => ({ name, from: 0, height: Math.max(LEAST, (bucket[name] / top) * height) }));
    const over = parts.reduce((sum, part) => sum + part.height, 0) - height;
    const largest = parts.reduce<Part | undefined>((most, part) => (most && most.height >= part.height ? most : part), undefined);
    if (largest && over > 0) {
      largest.height -= over;
    }
    let from = 0;
    for (const part of parts) {
      part.from = from;
      from += part.height;
    }
    return parts;
  });
}

/** emptyUntil returns how many buckets at the beginning have no jobs at all: the installation was not there yet, or idle. */
export function emptyUntil(buckets: readonly Bucket[]): number {
  const first = buckets.findIndex(({ accepted, completed, failed, cancelled }) => accepted + completed + failed + cancelled > 0);
  return first < 0 ? buckets.length : first;
}

/** ticks returns the marks of an axis from 0 to at least most: whole numbers, since there are no half jobs. */
export function ticks(most: number): number[] {
  if (most <= 0) {
    return [0, 1];
  }
  const rough = most / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, [1, 2, 5, 10].map((digit) => digit * power).find((each) => each >= rough) ?? rough);
  return Array.from({ length: Math.ceil(most / step) + 1 }, (_, i) => i * step);
}

/** labelEvery returns the buckets that have a label, some 70 pixels apart. */
export function labelEvery(buckets: number, width: number): number[] {
  const step = Math.max(1, Math.ceil(buckets / Math.max(1, Math.floor(width / 70))));
  return Array.from({ length: Math.ceil(buckets / step) }, (_, i) => i * step);
}

const hour = zoned({ hour: '2-digit', minute: '2-digit' });
const day = zoned({ day: 'numeric', month: 'short' });
const DAY_SECONDS = 86_400;

/** timeLabel is the time of a bucket on the axis. */
export function timeLabel(at: string, seconds: number): string {
  return (seconds >= DAY_SECONDS ? day : hour)(at);
}

/** wholeLabel is the time of a bucket with its day. */
export function wholeLabel(at: string, seconds: number): string {
  return seconds >= DAY_SECONDS ? day(at) : `${day(at)}, ${hour(at)}`;
}
