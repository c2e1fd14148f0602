import { writeFilters } from '../pages/jobs/filters';
import { parseQuery } from '../pages/jobs/query';
import type { Command } from './commands';
import { paths } from './paths';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const TRACE = /^[0-9a-f]{32}$/;

/** idOf returns the id that a text is: a UUID, or a W3C trace id, written as one; null if it is none. */
export function idOf(text: string): string | null {
  const lower = text.trim().toLowerCase();
  if (TRACE.test(lower)) {
    return lower.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
  }
  return UUID.test(lower) ? lower : null;
}

/** nextId returns the id after an id, in the order of lists. */
export function nextId(id: string): string {
  const next = (BigInt(`0x${id.replaceAll('-', '')}`) + 1n) & ((1n << 128n) - 1n);
  return idOf(next.toString(16).padStart(32, '0')) ?? id;
}

/** searches returns the searches for jobs that a typed text may mean: it may have the qualifiers of the list of jobs. */
export function searches(text: string, go: (path: string) => void): Command[] {
  const wanted = text.trim();
  const id = idOf(wanted);
  if (id !== null) {
    return [{ name: `Jobs with the trace id ${id}`, icon: 'search', run: () => go(paths.jobs({ traceId: id })) }];
  }
  if (wanted.length < 2) {
    return [];
  }
  return [{ name: `Search jobs for “${wanted}”`, icon: 'search', run: () => go(paths.jobs(writeFilters(parseQuery(wanted)))) }];
}
