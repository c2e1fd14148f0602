const NAMES = ['actor', 'action', 'jobId', 'ownerId', 'since', 'until'] as const;

/** Filters are the parameters of GET /api/audit. They are in the page's address. */
export type Filters = Partial<Record<(typeof NAMES)[number], string>>;

/** filtersOf returns the filters of an address or a form, without empty ones. */
export function filtersOf(search: Record<string, unknown>): Filters {
  const filters: Filters = {};
  for (const name of NAMES) {
    const value = search[name];
    if (typeof value === 'string' && value.trim() !== '') {
      filters[name] = value.trim();
    }
  }
  return filters;
}

/** withTime returns the filters with another time; null: without it. */
export function withTime(filters: Filters, name: 'since' | 'until', at: string | null): Filters {
  const { [name]: _, ...others } = filters;
  return at === null ? others : { ...others, [name]: at };
}
