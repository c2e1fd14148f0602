import type { Job } from './queries';

export type Wait = Job['waits'][number];
export type Step = Job['steps'][number];

/** HandlerRow is one thing that the handler did: a step, or something for which it gave up its slot. */
export interface HandlerRow {
  kind: 'step' | 'sleep' | 'event' | 'call' | 'snooze';
  name: string;
  attempt: number;
  at: number; // when it began, in milliseconds since 1970
  end: number | null; // null: it is not known
  took: number | null; // null: it was not measured, or goes on
  step?: Step;
  wait?: Wait;
}

type Handled = Pick<Job, 'waits' | 'steps' | 'history' | 'attempts'>;

/** handlerRows returns what the handler of a job did in all attempts, first one first. */
export function handlerRows(job: Handled): HandlerRow[] {
  const rows = [...job.steps.map(ofStep), ...job.waits.map((wait) => ofWait(job, wait))];
  return [...rows, ...snoozes(job, rows)].sort((a, b) => a.at - b.at);
}

function ofStep(step: Step): HandlerRow {
  const { name, attempt, until, tookMs } = step;
  const saved = Date.parse(step.savedAt);
  if (until === null) {
    return { kind: 'step', name, attempt, at: saved - (tookMs ?? 0), end: saved, took: tookMs, step };
  }
  const end = Date.parse(until);
  return { kind: 'sleep', name, attempt, at: saved, end, took: end - saved, step };
}

function ofWait(job: Handled, wait: Wait): HandlerRow {
  const at = Date.parse(wait.createdAt);
  const end = wait.doneAt === null ? null : Date.parse(wait.doneAt);
  const begun = job.attempts.filter(({ startedAt }) => startedAt !== null && Date.parse(startedAt) <= at);
  const attempt = begun.at(-1)?.attempt ?? 1;
  return { kind: wait.event ? 'event' : 'call', name: wait.name, attempt, at, end, took: end && end - at, wait };
}

/** snoozes returns the snoozes that the handler asked for by itself: no sleep, event or call has caused them. */
function snoozes({ history, attempts }: Handled, rows: readonly HandlerRow[]): HandlerRow[] {
  return history.flatMap((move, i) => {
    const ran = attempts.find(({ attempt }) => attempt === move.attempt);
    if (move.to !== 'SCHEDULED' || move.from === 'SCHEDULED' || ran?.outcome !== 'snoozed') {
      return [];
    }
    const at = Date.parse(move.at);
    const started = Date.parse(ran.startedAt ?? move.at);
    if (rows.some((row) => row.kind !== 'step' && row.at <= at && (row.end === null || row.end > started))) {
      return [];
    }
    const next = history.slice(i + 1).find(({ to }) => to !== 'SCHEDULED');
    const end = next ? Date.parse(next.at) : null;
    return [{ kind: 'snooze', name: '', attempt: move.attempt, at, end, took: end && end - at }];
  });
}
