import { answer, api, type Schemas } from '../../api/client';
import type { IconName } from '../../ui/Icon';
import type { Status } from '../../ui/StatusBadge';
import { toQuery, type Filters, type Query } from './filters';

export type BulkCommand = Schemas['Command'];

interface CommandInfo {
  command: BulkCommand;
  label: string;
  icon: IconName;
  to: readonly Status[]; // states that allow it
  does: string;
}

export const COMMANDS: readonly CommandInfo[] = [
  {
    command: 'cancel',
    label: 'Cancel',
    icon: 'cancel',
    to: ['SCHEDULED', 'PENDING', 'QUEUED', 'RUNNING', 'WAITING', 'RETRYING'],
    does: 'Jobs that wait end at once; those that run are asked to end.',
  },
  { command: 'retry', label: 'Retry', icon: 'retry', to: ['FAILED', 'CANCELLED'], does: 'They run again, with all their retries.' },
  {
    command: 'reschedule',
    label: 'Reschedule',
    icon: 'clock',
    to: ['SCHEDULED', 'PENDING', 'RETRYING'],
    does: 'They run at the new time at the earliest.',
  },
  {
    command: 'delete',
    label: 'Delete',
    icon: 'trash',
    to: ['COMPLETED', 'FAILED', 'CANCELLED'],
    does: 'They and their logs are gone for good. This cannot be undone.',
  },
];

export function infoOf(command: BulkCommand): CommandInfo {
  const info = COMMANDS.find((each) => each.command === command);
  if (info === undefined) {
    throw new Error(`no command ${command}`);
  }
  return info;
}

export type Target = { jobIds: string[] } | { filters: Filters };

/** narrowed returns the filters with only those states in which the command is allowed; null if there is none. */
export function narrowed(filters: Filters, command: BulkCommand): Filters | null {
  const allowed = infoOf(command).to;
  const status = filters.status.length === 0 ? [...allowed] : filters.status.filter((each) => allowed.includes(each));
  return status.length === 0 ? null : { ...filters, status };
}

export interface Counted {
  n: number;
  more: boolean; // more than n match
}

const PAGE = 200;
const MOST_PAGES = 25;

/** countMatching counts the jobs that the list would show, up to five thousand. It calls report after each page except the last. */
export async function countMatching(query: Query, signal: AbortSignal, report: (counted: Counted) => void): Promise<Counted> {
  let n = 0;
  let cursor: string | null = null;
  for (let page = 0; page < MOST_PAGES; page++) {
    const body: Schemas['JobPage'] = await answer(
      api.GET('/api/jobs', { params: { query: { ...query, limit: PAGE, ...(cursor !== null && { cursor }) } }, signal }),
    );
    n += body.jobs.length;
    cursor = body.nextCursor;
    if (cursor === null) {
      return { n, more: false };
    }
    report({ n, more: true });
  }
  return { n, more: true };
}

/** startOperation starts an operation; with the key, a request whose response was lost can be repeated. */
export function startOperation(command: BulkCommand, target: { jobIds: string[] } | { filter: Query }, when: { runAt: string } | null, key: string) {
  return answer(api.POST('/api/operations', { body: { command, ...target, ...when, idempotencyKey: key } }));
}

/** targetOf fixes the latest time of acceptance, so that the command reaches no more jobs than were counted. */
export function targetOf(filters: Filters, now: Date): Query {
  const query = toQuery(filters, now);
  return query.until === undefined ? { ...query, until: now.toISOString() } : query;
}
