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

/** sinceOf returns when a window began. */
export function sinceOf(window: Window, throughput: Schemas['Throughput']): string {
  return throughput[SPANS[window]][0]?.at ?? '';
}
