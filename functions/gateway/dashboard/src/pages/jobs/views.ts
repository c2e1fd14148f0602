import { stringifySearch } from '../../app/paths';
import { writeFilters, type Filters } from './filters';

export interface View {
  name: string;
  search: string; // as in the address, without the question mark
}

/** BUILTIN are the views that all users have. */
export const BUILTIN: readonly View[] = [
  { name: 'All jobs', search: '' },
  { name: 'Failed in the last 24 h', search: 'status=FAILED&endedSince=24h' },
  { name: 'Failed yesterday', search: 'status=FAILED&endedSince=yesterday' },
  { name: 'In hand now', search: 'status=QUEUED&status=RUNNING&status=WAITING' },
  { name: 'Waiting for their turn', search: 'status=PENDING&status=RETRYING' },
  { name: 'Timed out', search: 'errorCode=WORKER.TIMEOUT' },
];

export function isViews(value: unknown): value is View[] {
  return (
    Array.isArray(value) &&
    value.every((view: unknown) => typeof view === 'object' && view !== null && 'name' in view && 'search' in view)
  );
}

export function searchOf(filters: Filters): string {
  return stringifySearch(writeFilters(filters)).slice(1);
}

/** save adds a view of these filters, or replaces the view with that name. */
export function save(views: readonly View[], name: string, filters: Filters): View[] {
  return [...views.filter((view) => view.name !== name), { name, search: searchOf(filters) }].sort((a, b) => a.name.localeCompare(b.name));
}
