import type { Schemas } from '../../api/client';

export type Job = Schemas['JobSummary'];

/** News are the changes that the shown rows do not have. */
export interface News {
  fresh: Job[]; // jobs above the first row, newest first
  gap: boolean; // there are more of them than were requested
  left: Set<string>; // rows that no longer match the filter
}

const NONE: News = { fresh: [], gap: false, left: new Set() };

/** newer returns the job with the higher version, which rises with each transition. */
function newer(a: Job, b: Job | undefined): Job {
  if (b === undefined) {
    return a;
  }
  if (b.version !== a.version) {
    return b.version > a.version ? b : a;
  }
  return b.updatedAt >= a.updatedAt ? b : a; // progress does not change the version
}

/** update sets the latest state of the rows without moving them. */
export function update(rows: readonly Job[], latest: ReadonlyMap<string, Job>): Job[] {
  return rows.map((row) => newer(row, latest.get(row.jobId)));
}

/**
 * compare finds the changes since the rows were loaded, from the newest page of the same list. Rows within its range that it
 * lacks no longer match the filter; rows older than its last may be on a later page. recent: that page has only jobs that were
 * accepted lately.
 */
export function compare(rows: readonly Job[], head: readonly Job[], headIsAll: boolean, recent = false): News {
  const first = rows[0];
  if (first === undefined) {
    return head.length === 0 ? NONE : { ...NONE, fresh: [...head], gap: !headIsAll };
  }
  const shown = new Set(rows.map((row) => row.jobId));
  const fresh = head.filter((job) => !shown.has(job.jobId) && follows(job, first));
  const inHead = new Set(head.map((job) => job.jobId));
  const last = head.at(-1);
  const inRange = (row: Job) => (headIsAll && !recent) || (last !== undefined && follows(row, last));
  const left = rows.filter((row) => inRange(row) && !inHead.has(row.jobId)).map((row) => row.jobId);
  return { fresh, gap: !headIsAll && fresh.length === head.length, left: new Set(left) };
}

/** follows: the list is in the order of acceptance, and jobIds, which are UUIDv7, order jobs of the same instant. */
function follows(a: Job, b: Job): boolean {
  return a.createdAt === b.createdAt ? a.jobId > b.jobId : Date.parse(a.createdAt) > Date.parse(b.createdAt);
}
