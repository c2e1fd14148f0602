import { parse, stringify } from '../../api/json';
import { fromLocalInput, toLocalInput } from '../../format/time';
import type { Schedule, ScheduleRequest } from './queries';

/** Draft is a schedule in its form, as texts. */
export interface Draft {
  name: string;
  cron: string;
  timeZone: string;
  job: string;
  overlap: NonNullable<ScheduleRequest['overlap']>;
  missed: NonNullable<ScheduleRequest['missed']>;
  paused: boolean;
  startAt: string;
  endAt: string;
  schedule?: Schedule; // the schedule to change
}

const example = { jobType: 'SIMULATION', payload: { steps: [{ type: 'LOG', message: 'hello' }] } };

export function draft(schedule?: Schedule): Draft {
  return {
    name: schedule?.name ?? '',
    cron: schedule?.cron ?? '',
    timeZone: schedule?.timeZone ?? Intl.DateTimeFormat().resolvedOptions().timeZone,
    job: stringify(schedule?.job ?? example, 2),
    overlap: schedule?.overlap ?? 'allow',
    missed: schedule?.missed ?? 'one',
    paused: schedule?.paused ?? false,
    startAt: local(schedule?.startAt),
    endAt: local(schedule?.endAt),
    ...(schedule && { schedule }),
  };
}

/**
 * instantOf returns the instant of an input, or that of the schedule if the input still shows it: the text has no more than
 * seconds, and is the same for both hours of the night when clocks are set back.
 */
function instantOf(text: string, before: string | null | undefined): string | null {
  return before && text === local(before) ? before : fromLocalInput(text);
}

function local(at: string | null | undefined): string {
  return at === null || at === undefined ? '' : toLocalInput(new Date(at));
}

/** toRequest returns the request for the API, or an error that describes the invalid JSON of the job. */
export function toRequest(from: Draft): { body: ScheduleRequest } | { error: string } {
  let job: unknown;
  try {
    job = parse(from.job);
  } catch (error) {
    return { error: `This is no JSON: ${error instanceof Error ? error.message : String(error)}` };
  }
  const startAt = instantOf(from.startAt, from.schedule?.startAt);
  const endAt = instantOf(from.endAt, from.schedule?.endAt);
  const { name, cron, timeZone, overlap, missed, paused } = from;
  return {
    body: {
      name: name.trim(), cron: cron.trim(), timeZone: timeZone.trim(), overlap, missed, paused,
      job: job as ScheduleRequest['job'],
      ...(startAt === null ? {} : { startAt }),
      ...(endAt === null ? {} : { endAt }),
    },
  };
}

/** problemAt returns an error's message about a field, or about a part of it. */
export function problemAt(details: readonly { path: string; message: string }[], field: string): string | undefined {
  const about = details.filter(({ path }) => path === field || path.startsWith(`${field}.`) || path.startsWith(`${field}[`));
  if (about.length === 0) {
    return undefined;
  }
  return about.map(({ path, message }) => (path === field ? message : `${path.slice(field.length).replace(/^\./, '')} ${message}`)).join('; ');
}
