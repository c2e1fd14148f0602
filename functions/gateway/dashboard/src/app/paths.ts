/** paths are the addresses of the pages that other pages link to. */
export const paths = {
  overview: () => '/',
  jobs: (filters: Record<string, string | readonly string[]> = {}) => withSearch('/jobs', filters),
  job: (jobId: string) => `/jobs/${encodeURIComponent(jobId)}`,
  newJob: () => '/new',
  dead: (filters: Record<string, string> = {}) => withSearch('/dead', filters),
  queue: (queue: string) => `/queues/${encodeURIComponent(queue)}`,
  type: (jobType: string) => `/types/${encodeURIComponent(jobType)}`,
  workers: () => '/workers',
  controls: () => '/controls',
  schedules: () => '/schedules',
  schedule: ({ name, ownerId }: { name: string; ownerId: string | null }) =>
    withSearch(`/schedules/${encodeURIComponent(name)}`, ownerId === null ? {} : { ownerId }),
  alerts: () => '/alerts',
  newAlert: (counts: { jobType: string } | { queue: string }) => withSearch('/alerts', { new: 'true', ...counts }),
  alert: ({ name, ownerId }: { name: string; ownerId: string | null }) =>
    withSearch(`/alerts/${encodeURIComponent(name)}`, ownerId === null ? {} : { ownerId }),
  batches: () => '/batches',
  batch: (batchId: string) => `/batches/${encodeURIComponent(batchId)}`,
  flows: () => '/flows',
  flow: (flowId: string, jobId?: string) => withSearch(`/flows/${encodeURIComponent(flowId)}`, jobId === undefined ? {} : { job: jobId }),
  operations: () => '/operations',
  operation: (operationId: string) => `/operations/${encodeURIComponent(operationId)}`,
  audit: (filters: Record<string, string> = {}) => withSearch('/audit', filters),
};

function withSearch(path: string, search: Record<string, string | readonly string[]>): string {
  const text = stringifySearch(search);
  return path + text;
}

/** stringifySearch writes a query string in which a list repeats its name: ?status=FAILED&status=RUNNING. */
export function stringifySearch(search: Record<string, unknown>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(search)) {
    for (const item of Array.isArray(value) ? value : [value]) {
      if (item !== undefined && item !== null && item !== '') {
        query.append(name, String(item));
      }
    }
  }
  const text = query.toString();
  return text === '' ? '' : `?${text}`;
}

/** parseSearch reads such a query string: a name that occurs once has a string, a repeated one a list. */
export function parseSearch(text: string): Record<string, string | string[]> {
  const query = new URLSearchParams(text);
  const search: Record<string, string | string[]> = {};
  for (const name of new Set(query.keys())) {
    const values = query.getAll(name);
    search[name] = values.length === 1 ? (values[0] ?? '') : values;
  }
  return search;
}

const OWNER = 'as';

/** withOwner adds the owner for which a user acts to an address. */
export function withOwner(path: string, owner: string | null): string {
  return owner === null ? path : `${path}${path.includes('?') ? '&' : '?'}${OWNER}=${encodeURIComponent(owner)}`;
}

/** withoutOwner takes the owner out of the query string of an address. */
export function withoutOwner(search: string): { owner: string | null; search: string } {
  const owner = new URLSearchParams(search).get(OWNER) || null;
  const others = search.slice(1).split('&').filter((part) => part !== '' && part.split('=')[0] !== OWNER);
  return { owner, search: others.length > 0 ? `?${others.join('&')}` : '' };
}
