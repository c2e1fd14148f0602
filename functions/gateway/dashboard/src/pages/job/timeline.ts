import type { Job } from './queries';

export type SpanKind = 'scheduled' | 'waiting' | 'running' | 'outside' | 'delay';

export interface Span {
  kind: SpanKind;
  attempt: number;
  from: number; // in milliseconds since 1970
  to: number;
  open: boolean; // it has not ended
}

const NAMES: Record<SpanKind, string> = {
  scheduled: 'until its time',
  waiting: 'waiting',
  running: 'running',
  outside: 'at an outside system',
  delay: 'retry delay',
};

/** spanName names a kind of span of a job: a fan-out waits for the jobs of its elements. */
export function spanName(kind: SpanKind, { forEach }: Pick<Job, 'forEach'>): string {
  return kind === 'outside' && forEach ? 'jobs of its elements' : NAMES[kind];
}

type History = Pick<Job, 'createdAt' | 'finishedAt' | 'status' | 'history' | 'attempts'>;

/**
 * spansOf converts a job's history into spans of time. Each transition ends one span and begins the next; an attempt that
 * has run splits the span between its dispatch and its outcome into waiting and running.
 */
export function spansOf(job: History, now: number): Span[] {
  const spans: Span[] = [];
  let from = Date.parse(job.createdAt);
  let state: string = job.history[0]?.from ?? first(job);
  let attempt = 1;
  for (const move of job.history) {
    const to = Math.max(Date.parse(move.at), from);
    spans.push(...between(job, state, attempt, from, to, false));
    from = to;
    state = move.to;
    attempt = state === 'RETRYING' || state === 'PENDING' ? move.attempt + 1 : Math.max(move.attempt, 1);
  }
  if (!['COMPLETED', 'FAILED', 'CANCELLED'].includes(state)) {
    spans.push(...between(job, state, attempt, from, Math.max(now, from), true));
  }
  return join(spans.filter((span) => span.open || span.to > span.from || span.kind === 'running')); // which may take less than a millisecond
}

function first(job: History): string {
  return job.history.length === 0 ? job.status : 'PENDING';
}

const KINDS: Record<string, SpanKind> = {
  SCHEDULED: 'scheduled',
  PENDING: 'waiting',
  QUEUED: 'waiting',
  RUNNING: 'running',
  WAITING: 'outside',
  RETRYING: 'delay',
};

function between(job: History, state: string, attempt: number, from: number, to: number, open: boolean): Span[] {
  const kind = KINDS[state] ?? 'waiting';
  const span = (kind: SpanKind, from: number, to: number, open: boolean): Span => ({ kind, attempt, from, to, open });
  const ran = job.attempts.find((each) => each.attempt === attempt);
  if ((state !== 'QUEUED' && state !== 'RUNNING') || !ran?.startedAt || Date.parse(ran.startedAt) > to) {
    return [span(kind, from, to, open)];
  }
  const started = clamp(Date.parse(ran.startedAt), from, to);
  const finished = ran.finishedAt ? clamp(Date.parse(ran.finishedAt), started, to) : to;
  return [span('waiting', from, started, false), span('running', started, finished, open && !ran.finishedAt)];
}

function clamp(at: number, from: number, to: number): number {
  return Math.min(Math.max(at, from), to);
}

/** join merges adjacent spans of the same kind and attempt. */
function join(spans: readonly Span[]): Span[] {
  const joined: Span[] = [];
  for (const span of spans) {
    const last = joined.at(-1);
    if (last && last.kind === span.kind && last.attempt === span.attempt) {
      joined[joined.length - 1] = { ...span, from: last.from };
    } else {
      joined.push(span);
    }
  }
  return joined;
}
