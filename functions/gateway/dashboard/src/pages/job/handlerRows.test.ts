import { expect, it } from 'vitest';
import { handlerRows, type Step, type Wait } from './handlerRows';

const T = Date.parse('2026-11-23T08:00:00Z');
const at = (seconds: number) => new Date(T + seconds * 1000).toISOString();
const step = (name: string, saved: number, more: Partial<Step> = {}): Step => ({
  name, attempt: 1, savedAt: at(saved), until: null, tookMs: null, result: null, bytes: 4, ...more,
});
const wait = (name: string, created: number, done: number | null, more: Partial<Wait> = {}): Wait => ({
  name, status: done === null ? 'OPEN' : 'DONE', createdAt: at(created), until: null, doneAt: done === null ? null : at(done), event: null, received: null, job: null, ...more,
});
const attempt = (number: number, started: number, finished: number, outcome: 'snoozed' | 'completed' | 'failed') => ({
  attempt: number, workerId: 'w', startedAt: at(started), finishedAt: at(finished), outcome, errorCode: null, message: null,
});
const move = (seconds: number, from: 'RUNNING' | 'SCHEDULED' | null, to: 'QUEUED' | 'SCHEDULED' | 'COMPLETED', number: number) => ({
  at: at(seconds), from, to, attempt: number, by: 'x', reason: null,
});

const shown = (job: Parameters<typeof handlerRows>[0]) =>
  handlerRows(job).map(({ kind, name, attempt, at, took }) => [kind, name, attempt, (at - T) / 1000, took === null ? '-' : took / 1000].join(' ').replace('  ', ' '));

it('puts steps, sleeps, events and calls in the order in which they began', () => {
  const job = {
    steps: [step('charge', 3, { tookMs: 2000 }), step('cool off', 4, { until: at(64) }), step('ship', 71, { attempt: 2 })],
    waits: [wait('paid', 2, 3, { event: { type: 'paid' } }), wait('pack', 70, null)],
    history: [move(5, 'RUNNING', 'SCHEDULED', 1), move(65, 'SCHEDULED', 'QUEUED', 2)],
    attempts: [attempt(1, 0, 5, 'snoozed'), attempt(2, 66, 80, 'completed')],
  };
  expect(shown(job)).toEqual(['step charge 1 1 2', 'event paid 1 2 1', 'sleep cool off 1 4 60', 'call pack 2 70 -', 'step ship 2 71 -']);
});

it('shows a snooze that no sleep, event or call has caused', () => {
  const job = {
    steps: [step('cool off', 4, { until: at(20) })],
    waits: [],
    history: [
      move(5, 'RUNNING', 'SCHEDULED', 1), move(6, 'SCHEDULED', 'SCHEDULED', 1), move(20, 'SCHEDULED', 'QUEUED', 2),
      move(25, 'RUNNING', 'SCHEDULED', 2), move(30, 'SCHEDULED', 'QUEUED', 3), move(35, 'RUNNING', 'SCHEDULED', 3),
    ],
    attempts: [attempt(1, 0, 5, 'snoozed'), attempt(2, 21, 25, 'snoozed'), attempt(3, 31, 35, 'snoozed')],
  };
  expect(shown(job)).toEqual(['sleep cool off 1 4 16', 'snooze 2 25 5', 'snooze 3 35 -']);
});

it('takes no snooze for its own if the event came while the attempt ended', () => {
  const job = {
    steps: [],
    waits: [wait('paid', 2, 4, { event: { type: 'paid' } })],
    history: [move(5, 'RUNNING', 'SCHEDULED', 1)],
    attempts: [attempt(1, 0, 5, 'snoozed')],
  };
  expect(shown(job)).toEqual(['event paid 1 2 2']);
});
