import type { Schemas } from '../../api/client';
import type { Flow } from '../batches/queries';
import type { GraphNode } from './nodes';

type Jobs = Flow['jobs'];
type Summary = Pick<Schemas['JobSummary'], 'finishedAt'>;

/** failed returns the names of the jobs of a flow with which its failure began: none of those before them failed. */
export function failed({ jobs }: Pick<Flow, 'jobs'>): string[] {
  const ended = (name: string | undefined) => name !== undefined && ['FAILED', 'CANCELLED'].includes(jobs[name]?.status ?? '');
  return Object.entries(jobs)
    .filter(([name, job]) => jobs[name]?.status === 'FAILED' && !job.after.some((edge) => ended(edge.name)))
    .map(([name]) => name)
    .sort();
}

/** firstFailed returns the name of the job that failed first, as far as that is known; null: none has failed. */
export function firstFailed(flow: Pick<Flow, 'jobs'>, known: ReadonlyMap<string, Summary>): string | null {
  const at = (name: string) => known.get(flow.jobs[name]?.jobId ?? '')?.finishedAt ?? '9';
  return failed(flow).sort((a, b) => at(a).localeCompare(at(b)))[0] ?? null;
}

/** wayTo returns the names of a job and of all that it came after. */
export function wayTo(jobs: Jobs, name: string | null): Set<string> {
  const way = new Set<string>();
  const left = name === null ? [] : [name];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    if (!way.has(next)) {
      way.add(next);
      left.push(...(jobs[next]?.after.flatMap((edge) => edge.name ?? []) ?? []));
    }
  }
  return way;
}

/** never counts the jobs that were cancelled behind a failed one: they never ran. */
export function never(jobs: Jobs): number {
  return Object.values(jobs).filter(({ status }) => status === 'CANCELLED').length;
}

/** isOn reports whether a node has a job of the way. */
export const isOn = (way: ReadonlySet<string>, { names }: GraphNode) => names.some((name) => way.has(name));
