import { expect, it } from 'vitest';
import type { Schemas } from '../../api/client';
import { trend } from './StateTiles';

const rates = (accepted: number, completed: number) => ({ accepted, completed, failed: 0, cancelled: 0 });
const stats = (pending: number, accepted: number, completed: number) =>
  ({
    jobs: { PENDING: pending },
    throughput: { perSecond: { '5m': rates(accepted, completed) }, minutes: [{ at: '', accepted: 0, completed: 1300, failed: 2, cancelled: 0 }] },
  }) as unknown as Schemas['Stats'];

it('shows whether the waiting jobs become more', () => {
  expect(trend('PENDING', stats(10, 5, 2))).toBe('▲ 3/s more come than end');
  expect(trend('PENDING', stats(10, 2, 5))).toBe('▼ 3/s more end than come');
  expect(trend('PENDING', stats(10, 2, 2.01))).toBe('');
  expect(trend('PENDING', stats(0, 5, 2))).toBe('');
});
it('shows what ended in the last hour', () => {
  expect(trend('COMPLETED', stats(0, 0, 0))).toBe('+1,300 in an hour');
  expect(trend('FAILED', stats(0, 0, 0))).toBe('+2 in an hour');
  expect(trend('CANCELLED', stats(0, 0, 0))).toBe('');
  expect(trend('RUNNING', stats(0, 0, 0))).toBe('');
});
