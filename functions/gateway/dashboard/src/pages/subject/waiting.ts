import type { Schemas } from '../../api/client';

type Job = Pick<Schemas['JobSummary'], 'blockedBy'>;
type Blocker = Schemas['Blocker'];

/** Reason is why jobs wait: what blocks them, or null for a free worker. */
export interface Reason {
  blocker: Blocker | null;
  jobs: number;
}

/** RANK is the order in which a job's reasons are named: a job that is paused and waits for its turn is paused first of all. */
const RANK: Blocker['kind'][] = ['pause', 'worker', 'dependency', 'order', 'singleton', 'limit'];

/** ONE_EACH are the kinds with another id for each job, or nearly so: they are counted together. */
const ONE_EACH: Blocker['kind'][] = ['dependency', 'order', 'singleton'];

/** reasons counts why the jobs of a sample wait, for all of total jobs: the most frequent reason first. */
export function reasons(sample: readonly Job[], total: number): Reason[] {
  const found = new Map<string, Reason>();
  for (const { blockedBy } of sample) {
    const [first] = blockedBy.toSorted((a, b) => RANK.indexOf(a.kind) - RANK.indexOf(b.kind));
    const blocker = first === undefined ? null : ONE_EACH.includes(first.kind) ? { kind: first.kind, id: '' } : first;
    const key = blocker === null ? '' : `${blocker.kind} ${blocker.id}`;
    const reason = found.get(key) ?? { blocker, jobs: 0 };
    reason.jobs++;
    found.set(key, reason);
  }
  const scale = sample.length < total ? total / sample.length : 1;
  return [...found.values()].map(({ blocker, jobs }) => ({ blocker, jobs: Math.round(jobs * scale) })).sort((a, b) => b.jobs - a.jobs);
}
