import { describe, expect, it } from 'vitest';
import type { Job } from './queries';
import { spansOf } from './timeline';

const T = Date.parse('2026-11-23T08:00:00Z');
const at = (seconds: number) => new Date(T + seconds * 1000).toISOString();
type Move = Job['history'][number];
const move = (seconds: number, from: Move['from'], to: Move['to'], attempt: number): Move => ({ at: at(seconds), from, to, attempt, by: 'x', reason: null });
const ran = (attempt: number, from: number, to: number | null, outcome: Job['attempts'][number]['outcome'], errorCode: string | null = null) => ({
  attempt,
  workerId: 'w',
  startedAt: at(from),
  finishedAt: to === null ? null : at(to),
  outcome,
  errorCode,
  message: null,
});

const short = (job: Parameters<typeof spansOf>[0], now = 100) =>
  spansOf(job, T + now * 1000).map((span) => `${span.attempt} ${span.kind} ${(span.from - T) / 1000}-${(span.to - T) / 1000}${span.open ? '+' : ''}`);

describe('spansOf', () => {
  it('splits an attempt that never showed RUNNING into waiting and running', () => {
    const job = {
      createdAt: at(0),
      finishedAt: at(3),
      status: 'COMPLETED' as const,
      history: [move(0, null, 'QUEUED', 1), move(3, 'QUEUED', 'COMPLETED', 1)],
      attempts: [ran(1, 1, 3, 'completed')],
    };
    expect(short(job)).toEqual(['1 waiting 0-1', '1 running 1-3']);
  });
  it('shows the delay between two attempts', () => {
    const job = {
      createdAt: at(0),
      finishedAt: at(15),
      status: 'COMPLETED' as const,
      history: [
        move(0, null, 'QUEUED', 1),
        move(2, 'QUEUED', 'RETRYING', 1),
        move(12, 'RETRYING', 'QUEUED', 2),
        move(15, 'QUEUED', 'COMPLETED', 2),
      ],
      attempts: [ran(1, 1, 2, 'failed', 'DEMO'), ran(2, 13, 15, 'completed')],
    };
    expect(short(job)).toEqual(['1 waiting 0-1', '1 running 1-2', '2 delay 2-12', '2 waiting 12-13', '2 running 13-15']);
  });
  it('shows an attempt that took no millisecond', () => {
    const job = {
      createdAt: at(0),
      finishedAt: at(3),
      status: 'FAILED' as const,
      history: [move(0, null, 'QUEUED', 1), move(3, 'QUEUED', 'FAILED', 1)],
      attempts: [ran(1, 2, 2, 'failed', 'DEMO')],
    };
    expect(short(job)).toEqual(['1 waiting 0-2', '1 running 2-2']);
  });
  it('leaves the span of a running attempt open', () => {
    const job = {
      createdAt: at(0),
      finishedAt: null,
      status: 'RUNNING' as const,
      history: [move(0, null, 'QUEUED', 1), move(2, 'QUEUED', 'RUNNING', 1)],
      attempts: [ran(1, 1, null, null)],
    };
    expect(short(job, 5)).toEqual(['1 waiting 0-1', '1 running 1-5+']);
  });
  it('waits for its time, and for an outside system', () => {
    const job = {
      createdAt: at(0),
      finishedAt: null,
      status: 'WAITING' as const,
      history: [move(0, null, 'SCHEDULED', 0), move(10, 'SCHEDULED', 'QUEUED', 1), move(12, 'QUEUED', 'WAITING', 1)],
      attempts: [ran(1, 11, 12, 'waiting')],
    };
    expect(short(job, 20)).toEqual(['1 scheduled 0-10', '1 waiting 10-11', '1 running 11-12', '1 outside 12-20+']);
  });
  it('has one open span where nothing has happened yet', () => {
    expect(short({ createdAt: at(0), finishedAt: null, status: 'PENDING', history: [], attempts: [] }, 4)).toEqual(['1 waiting 0-4+']);
  });
  it('never runs backwards where two clocks differ', () => {
    const job = {
      createdAt: at(5),
      finishedAt: at(6),
      status: 'COMPLETED' as const,
      history: [move(4, null, 'QUEUED', 1), move(6, 'QUEUED', 'COMPLETED', 1)],
      attempts: [ran(1, 3, 7, 'completed')],
    };
    expect(short(job)).toEqual(['1 running 5-6']);
  });
});
