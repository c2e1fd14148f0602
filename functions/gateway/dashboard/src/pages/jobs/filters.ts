import type { Schemas } from '../../api/client';
import { midnight } from '../../format/time';
import { STATUSES, type Status } from '../../ui/StatusBadge';

/** TEXTS are the filters whose value is any text, in the order in which the page offers them. */
export const TEXTS = ['q', 'type', 'queue', 'tag', 'errorCode', 'payload', 'traceId', 'idempotencyKey', 'orderingKey', 'after', 'batchId', 'fanOutId', 'ownerId'] as const;

export type TextFilter = (typeof TEXTS)[number];

/** TIMES are the times of a job by which the list filters. */
export const TIMES = [
  { label: 'Accepted', since: 'since', until: 'until' },
  { label: 'Ended', since: 'endedSince', until: 'endedUntil' },
] as const;

export type Time = (typeof TIMES)[number];

type SinceName = Time['since']; // its value is an instant, a span that ends now such as "1h", a day of DAYS, or empty
type UntilName = Time['until']; // an instant, or empty

export interface Filters extends Record<SinceName | UntilName, string> {
  status: Status[];
  noErrorCode: boolean;
  texts: Partial<Record<TextFilter, string>>;
}

type Search = Record<string, unknown>;

const SPAN = /^(\d{1,4})([mhd])$/;

/** DAYS are the days that since can name, and how long ago they began. They end at the next midnight. */
export const DAYS: Readonly<Record<string, number>> = { today: 0, yesterday: 1 };

/** isSpan reports whether since is a span that ends now, not an instant. */
export function isSpan(since: string): boolean {
  return SPAN.test(since);
}

/**
 * readFilters reads the filters from the address, without unknown names. It keeps values that no job can have, which the API
 * refuses: without them the page would show all jobs as the result.
 */
export function readFilters(search: Search): Filters {
  const status = list(search['status']);
  const filters: Filters = {
    status: [...STATUSES, ...status.filter((text) => !(STATUSES as readonly string[]).includes(text))].filter((each) => each && status.includes(each)) as Status[],
    since: list(search['since'])[0] ?? '',
    until: list(search['until'])[0] ?? '',
    endedSince: list(search['endedSince'])[0] ?? '',
    endedUntil: list(search['endedUntil'])[0] ?? '',
    noErrorCode: list(search['noErrorCode']).includes('true'),
    texts: {},
  };
  for (const name of TEXTS) {
    const [value] = list(search[name]);
    if (value && !(name === 'errorCode' && filters.noErrorCode)) {
      filters.texts[name] = value;
    }
  }
  return filters;
}

function list(value: unknown): string[] {
  return (Array.isArray(value) ? value : [value]).filter((item): item is string => typeof item === 'string');
}

/** writeFilters is the inverse of readFilters. */
export function writeFilters(filters: Filters): Record<string, string | string[]> {
  return {
    ...(filters.status.length > 0 && { status: filters.status }),
    ...filters.texts,
    ...timesOf(filters),
    ...(filters.noErrorCode && { noErrorCode: 'true' }),
  };
}

/** timesOf returns the times that are set, as resolve writes the beginning and the end of a span of time. */
function timesOf(filters: Filters, resolve = (since: string, until: string): [string, string] => [since, until]): Partial<Record<SinceName | UntilName, string>> {
  const times = TIMES.flatMap(({ since, until }) => {
    const [from, to] = resolve(filters[since], filters[until]);
    return [[since, from], [until, to]] as const;
  });
  return Object.fromEntries(times.filter(([, text]) => text !== ''));
}

const UNIT_MS = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** resolveSince converts a span that ends now into the instant at which it begins. */
export function resolveSince(since: string, now: Date): string {
  const span = SPAN.exec(since);
  if (span === null) {
    return since;
  }
  return new Date(now.getTime() - Number(span[1]) * UNIT_MS[span[2] as keyof typeof UNIT_MS]).toISOString();
}

/** resolve converts a span of time into its instants; a named day also has an end. */
function resolve(since: string, until: string, now: Date): [string, string] {
  const day = DAYS[since];
  if (day === undefined) {
    return [instantOf(resolveSince(since, now)), instantOf(until)];
  }
  const end = day === 0 ? '' : midnight(now, day - 1).toISOString();
  return [midnight(now, day).toISOString(), instantOf(until) || end];
}

export type Query = Omit<Schemas['OperationFilter'], 'all'>;

/** toQuery converts the filters for the API's list and its operations. */
export function toQuery(filters: Filters, now: Date): Query {
  return {
    ...(filters.status.length > 0 && { status: filters.status }),
    ...filters.texts,
    ...timesOf(filters, (since, until) => resolve(since, until, now)),
    ...(filters.noErrorCode && { noErrorCode: true as const }),
  };
}

function instantOf(text: string): string {
  const at = new Date(text);
  return Number.isNaN(at.getTime()) ? text : at.toISOString(); // the API refuses a text that is no instant
}

export function isEmpty(filters: Filters): boolean {
  return Object.keys(writeFilters(filters)).length === 0;
}

export function toggleStatus(filters: Filters, status: Status): Filters {
  const has = filters.status.includes(status);
  return { ...filters, status: STATUSES.filter((known) => (known === status ? !has : filters.status.includes(known))) };
}

/** withText sets a text filter; an empty text removes it. An error code replaces the filter for jobs without one. */
export function withText(filters: Filters, name: TextFilter, value: string): Filters {
  const { [name]: _, ...texts } = filters.texts;
  const trimmed = value.trim();
  if (trimmed === '') {
    return { ...filters, texts };
  }
  return { ...filters, texts: { ...texts, [name]: trimmed }, noErrorCode: filters.noErrorCode && name !== 'errorCode' };
}
