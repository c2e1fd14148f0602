import { type Status } from '../../ui/StatusBadge';
import type { Job } from './queries';
import { type Span, spansOf } from './timeline';

export type Attempt = Job['attempts'][number];
type Move = Job['history'][number];

/** Row is an attempt with its times. One that has not begun has spans only. */
export interface Row {
  number: number;
  attempt: Attempt | null;
  spans: Span[];
}

/** rowsOf returns the attempts of a job, first one first, and the one that it waits for. */
export function rowsOf(job: Pick<Job, 'createdAt' | 'finishedAt' | 'status' | 'history' | 'attempts'>, now: number): Row[] {
  const rows = new Map<number, Row>();
  const row = (number: number) => {
    const found = rows.get(number) ?? { number, attempt: null, spans: [] };
    rows.set(number, found);
    return found;
  };
  for (const attempt of job.attempts) {
    row(attempt.attempt).attempt = attempt;
  }
  for (const span of spansOf(job, now)) {
    row(span.attempt).spans.push(span);
  }
  return [...rows.values()].sort((a, b) => a.number - b.number);
}

/** OUTCOMES describes what became of an attempt. */
export const OUTCOMES: Record<NonNullable<Attempt['outcome']>, { tone: 'plain' | 'good' | 'warn' | 'danger'; meaning: string }> = {
  completed: { tone: 'good', meaning: 'It ended well.' },
  failed: { tone: 'danger', meaning: 'Its handler failed, or it took too long.' },
  lost: { tone: 'danger', meaning: 'Its worker died or fell silent.' },
  interrupted: { tone: 'warn', meaning: 'Its worker gave it back: it stopped, or had no free slot.' },
  cancelled: { tone: 'plain', meaning: 'It was cancelled.' },
  snoozed: { tone: 'plain', meaning: 'Its handler asked to run again later.' },
  waiting: { tone: 'plain', meaning: 'An outside system goes on with it.' },
};

/** tick adds an attempt to those that are compared, or takes it out. They are two at most: the first one gives way. */
export function tick(ticked: readonly number[], number: number): number[] {
  return ticked.includes(number) ? ticked.filter((other) => other !== number) : [...ticked.slice(-1), number];
}

/** wayOf returns the states of the job in their order, the present one last. */
export function wayOf(job: Pick<Job, 'history' | 'status'>): Status[] {
  const way: Status[] = [];
  for (const { from, to } of job.history) {
    if (way.length === 0 && from !== null) {
      way.push(from);
    }
    if (way.at(-1) !== to) {
      way.push(to);
    }
  }
  if (way.at(-1) !== job.status) {
    way.push(job.status);
  }
  return way;
}

const CAUSES: Record<string, string> = {
  ingest: 'its submission',
  dispatch: 'the scheduler',
  outcome: 'its worker',
  watchdog: 'the check of silent workers',
};

/** causeOf names what moved the job: a part of JobWeaver, or a key or token with a command. */
export function causeOf({ by, reason }: Move): string {
  return isCommand(reason) ? by : (CAUSES[by] ?? by);
}

const COMMANDS = ['cancel', 'retry', 'reschedule', 'delete', 'change', 'report'];
const isCommand = (reason: string | null) => reason !== null && COMMANDS.includes(reason);

/** whyOf returns the reason of a move: that of the scheduler, or what became of the attempt that it ended. */
export function whyOf({ from, to, attempt, reason }: Move, attempts: readonly Attempt[]): string {
  const ended = (from === 'QUEUED' || from === 'RUNNING' || from === 'WAITING') && to !== 'RUNNING';
  const ran = ended ? attempts.find((each) => each.attempt === attempt) : undefined;
  return reason ?? [ran?.outcome, ran?.errorCode, ran?.message].filter(Boolean).join(', ');
}
