import { expect, it } from 'vitest';
import { causeOf, rowsOf, tick, wayOf, whyOf } from './attemptRows';
import type { Job } from './queries';

type Move = Job['history'][number];
const move = (from: Move['from'], to: Move['to'], change: Partial<Move> = {}): Move => ({
  at: '2026-11-23T08:00:00Z', from, to, attempt: 1, by: 'outcome', reason: null, ...change,
});
const failed: Job['attempts'][number] = {
  attempt: 1, workerId: 'w', startedAt: '2026-11-23T08:00:00Z', finishedAt: '2026-11-23T08:00:01Z', outcome: 'failed', errorCode: 'CRM.TIMEOUT',
  message: 'no answer',
};

it('has a row for each attempt, and for the one that the job waits for', () => {
  const job = {
    createdAt: '2026-11-23T07:59:00Z', finishedAt: null, status: 'RETRYING' as const, attempts: [failed],
    history: [move(null, 'QUEUED'), move('QUEUED', 'RETRYING', { at: '2026-11-23T08:00:01Z' })],
  };
  const rows = rowsOf(job, Date.parse('2026-11-23T08:00:05Z'));
  expect(rows.map(({ number, attempt, spans }) => [number, attempt?.errorCode, spans.map((span) => span.kind)])).toEqual([
    [1, 'CRM.TIMEOUT', ['waiting', 'running']],
    [2, undefined, ['delay']],
  ]);
});
it('keeps an attempt whose moves the history has no more', () => {
  const job = { createdAt: '2026-11-23T07:59:00Z', finishedAt: null, status: 'FAILED' as const, attempts: [failed], history: [] };
  expect(rowsOf(job, 0)).toEqual([{ number: 1, attempt: failed, spans: [] }]);
});
it('compares two attempts at most', () => {
  expect(tick([], 1)).toEqual([1]);
  expect(tick([1], 3)).toEqual([1, 3]);
  expect(tick([1, 3], 2)).toEqual([3, 2]);
  expect(tick([1, 3], 1)).toEqual([3]);
});
it('follows the history to the present state', () => {
  const history = [move(null, 'QUEUED'), move('QUEUED', 'RETRYING'), move('RETRYING', 'QUEUED')];
  expect(wayOf({ history, status: 'RUNNING' })).toEqual(['QUEUED', 'RETRYING', 'QUEUED', 'RUNNING']);
  expect(wayOf({ history: [], status: 'PENDING' })).toEqual(['PENDING']);
});
it('names causes as a user knows them', () => {
  expect(causeOf(move('QUEUED', 'FAILED'))).toBe('its worker');
  expect(causeOf(move('PENDING', 'CANCELLED', { by: 'dispatch', reason: 'expired' }))).toBe('the scheduler');
  expect(causeOf(move('FAILED', 'PENDING', { by: 'dispatch', reason: 'retry' }))).toBe('dispatch'); // a key of this name
});
it('gives as reason what became of the attempt', () => {
  expect(whyOf(move('RUNNING', 'FAILED'), [failed])).toBe('failed, CRM.TIMEOUT, no answer');
  expect(whyOf(move('PENDING', 'QUEUED'), [failed])).toBe('');
  expect(whyOf(move('FAILED', 'PENDING', { reason: 'retry' }), [failed])).toBe('retry');
});
