import { fromLocalInput, toLocalInput } from '../../format/time';
import { STATUSES, type Status } from '../../ui/StatusBadge';
import { DAYS, isSpan, readFilters, TIMES, withText, writeFilters, type Filters, type TextFilter } from './filters';

type TimeName = (typeof TIMES)[number]['since' | 'until'];

interface Qualifier {
  name: string; // as it is typed, before the colon
  means: string;
  filter: TextFilter | TimeName | 'status';
}

/** QUALIFIERS are the names before a colon in a search, in the order in which they are suggested and written. */
export const QUALIFIERS: readonly Qualifier[] = [
  { name: 'status', means: 'state', filter: 'status' },
  { name: 'type', means: 'job type', filter: 'type' },
  { name: 'queue', means: 'queue', filter: 'queue' },
  { name: 'code', means: 'error code, or none', filter: 'errorCode' },
  { name: 'tag', means: 'tag, or its beginning and *', filter: 'tag' },
  { name: 'payload', means: 'value in the payload, as order.id:17', filter: 'payload' },
  { name: 'owner', means: 'owner', filter: 'ownerId' },
  { name: 'since', means: 'accepted from then on', filter: 'since' },
  { name: 'until', means: 'accepted before then', filter: 'until' },
  { name: 'ended-since', means: 'ended from then on', filter: 'endedSince' },
  { name: 'ended-until', means: 'ended before then', filter: 'endedUntil' },
  { name: 'key', means: 'idempotency key', filter: 'idempotencyKey' },
  { name: 'ordering', means: 'ordering key', filter: 'orderingKey' },
  { name: 'trace', means: 'trace id', filter: 'traceId' },
  { name: 'batch', means: 'batch or flow', filter: 'batchId' },
  { name: 'fan-out', means: 'fan-out', filter: 'fanOutId' },
  { name: 'after', means: 'waits for this job', filter: 'after' },
];

const NO_CODE = 'none';
const TOKEN = /(?:[^\s":]+:){0,2}"(?:[^"\\]|\\.)*"?|\S+/g; // the value of payload:path:"two words" is behind its second colon

/** qualifierOf splits a part of a search at its colon; undefined: it is plain text. */
function qualifierOf(part: string): { qualifier: Qualifier; value: string } | undefined {
  const colon = part.indexOf(':');
  const qualifier = QUALIFIERS.find(({ name }) => name === part.slice(0, Math.max(colon, 0)).toLowerCase());
  return qualifier && { qualifier, value: unquoted(part.slice(colon + 1)) };
}

function unquoted(text: string): string {
  return text.replace(/(^|^[^"]*:)"((?:[^"\\]|\\.)*)"?$/, (_, before: string, inside: string) => before + inside.replace(/\\(.)/g, '$1'));
}

function inQuotes(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&')}"`;
}

function quoted(text: string): string {
  return /[\s"]/.test(text) ? inQuotes(text) : text;
}

/** parseQuery reads what a user has typed: qualifiers with their values, and other words, which are searched as a text. */
export function parseQuery(text: string): Filters {
  let filters = readFilters({});
  const words: string[] = [];
  for (const part of text.match(TOKEN) ?? []) {
    const found = qualifierOf(part);
    if (found === undefined) {
      words.push(part);
    } else if (found.value !== '') {
      filters = withQualifier(filters, found.qualifier, found.value);
    }
  }
  const q = words.length === 1 && words[0]?.startsWith('"') ? unquoted(words[0]) : words.join(' ');
  return withText(filters, 'q', q);
}

function withQualifier(filters: Filters, { filter }: Qualifier, value: string): Filters {
  if (filter === 'status') {
    const named = value.toUpperCase().split(',').filter(Boolean) as Status[];
    return { ...filters, status: readFilters({ status: [...filters.status, ...named] }).status };
  }
  if (isTime(filter)) {
    return { ...filters, [filter]: timeOf(value) };
  }
  if (filter === 'errorCode' && value.toLowerCase() === NO_CODE) {
    return { ...withText(filters, 'errorCode', ''), noErrorCode: true };
  }
  return withText(filters, filter, value);
}

function isTime(filter: Qualifier['filter']): filter is TimeName {
  return TIMES.some(({ since, until }) => filter === since || filter === until);
}

/** timeOf returns a time as it stands in the address: a span or a named day as it is, and else an instant. */
function timeOf(value: string): string {
  const lower = value.toLowerCase();
  if (isSpan(lower) || lower in DAYS) {
    return lower;
  }
  const inZone = /^\d{4}-\d\d-\d\d$/.test(value) ? `${value}T00:00` : value;
  return /(z|[+-]\d\d:\d\d)$/i.test(value) ? value : (fromLocalInput(inZone) ?? value); // the API refuses a text that is no instant
}

function shownTime(value: string): string {
  const at = new Date(value);
  return isSpan(value) || value in DAYS || Number.isNaN(at.getTime()) ? value : toLocalInput(at).replace(/T00:00:00$/, '');
}

/** writeQuery is the inverse of parseQuery. */
export function writeQuery(filters: Filters): string {
  const parts = QUALIFIERS.flatMap(({ name, filter }) => {
    if (filter === 'status') {
      return filters.status.length > 0 ? [`${name}:${filters.status.map((status) => status.toLowerCase()).join(',')}`] : [];
    }
    if (filter === 'errorCode' && filters.noErrorCode) {
      return [`${name}:${NO_CODE}`];
    }
    const value = isTime(filter) ? shownTime(filters[filter]) : (filters.texts[filter] ?? '');
    return value === '' ? [] : [`${name}:${quoted(value)}`];
  });
  const q = filters.texts.q ?? '';
  return [...parts, isPlain(q) ? q : inQuotes(q)].filter(Boolean).join(' ');
}

/** isPlain reports whether a text needs no quotes to be searched as it is. */
function isPlain(q: string): boolean {
  const read = writeFilters(parseQuery(q));
  return q === '' || (read['q'] === q && Object.keys(read).length === 1);
}

/** Known are the values that a search can suggest, by the name of their qualifier; of payload they are paths. Without it, payloads are sealed. */
export type Known = Partial<Record<string, readonly string[]>>;

export interface Suggestion {
  name: string; // the part of the search that it completes
  hint: string;
  whole: boolean; // with a value, so that it can be searched at once
}

const ALWAYS: Known = {
  status: STATUSES.map((status) => status.toLowerCase()),
  since: [...Object.keys(DAYS), '15m', '1h', '24h', '7d'],
  'ended-since': [...Object.keys(DAYS), '15m', '1h', '24h', '7d'],
  code: [NO_CODE],
};
const MOST = 10;

/** lastPart returns the part of a search at its end, which suggestions complete; empty after a space. */
function lastPart(text: string): string {
  return /((?:[^\s":]+:){0,2}"(?:[^"\\]|\\.)*"?|\S+)$/.exec(text)?.[0] ?? '';
}

/** suggestions completes the part of a search at its end: to a qualifier, or to a known value. */
export function suggestions(text: string, known: Known): Suggestion[] {
  const part = lastPart(text);
  const at = qualifierOf(part);
  const valuesOf = (qualifier: Qualifier, wanted: string, before = '') =>
    [...new Set([...(ALWAYS[qualifier.name] ?? []), ...(known[qualifier.name] ?? [])])]
      .filter((value) => value.toLowerCase().includes(wanted.toLowerCase()) && value !== wanted)
      .map((value) => ({ name: `${qualifier.name}:${before}${quoted(value)}`, hint: qualifier.filter === 'payload' ? '' : qualifier.means.replace(/,.*/, ''), whole: !value.endsWith(':') }));
  if (at !== undefined) {
    const before = at.qualifier.filter === 'status' ? at.value.slice(0, at.value.lastIndexOf(',') + 1) : ''; // several states
    return valuesOf(at.qualifier, at.value.slice(before.length), before).slice(0, MOST);
  }
  const names = QUALIFIERS.filter(({ name }) => name.startsWith(part.toLowerCase()) && (name !== 'payload' || known['payload'] !== undefined))
    .map(({ name, means }) => ({ name: `${name}:`, hint: means, whole: false }));
  const values = part.length < 2 ? [] : QUALIFIERS.flatMap((qualifier) => valuesOf(qualifier, part));
  return [...values, ...names].slice(0, MOST);
}

/** complete replaces the part of a search at its end. */
export function complete(text: string, { name, whole }: Suggestion): string {
  const part = lastPart(text);
  const before = text.slice(0, text.length - part.length);
  return `${before}${name}${whole ? ' ' : ''}`;
}
