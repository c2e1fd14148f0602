import type { Schemas } from '../../api/client';
import type { Span } from './flow';

/** Window is a span of time in the statistics. */
export type Window = keyof Schemas['FailuresByWindow'];

export const WINDOWS = [
  { value: '1h', label: 'Hour' },
  { value: '24h', label: 'Day' },
  { value: '30d', label: 'Month' },
] as const;

const SPANS: Record<Window, Span> = { '1h': 'minutes', '24h': 'hours', '30d': 'days' };

/** sinceOf returns when a window began. That of five minutes also has the minute that is not over. */
export function sinceOf(window: Window | '5m', throughput: Schemas['Throughput']): string {
  return (window === '5m' ? throughput.minutes.at(-6) : throughput[SPANS[window]][0])?.at ?? '';
}
