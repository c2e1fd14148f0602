import type { Flow } from '../batches/queries';

/** failed returns the names of the jobs of a flow with which its failure began: none of those before them failed. */
export function failed({ jobs }: Pick<Flow, 'jobs'>): string[] {
  const ended = (name: string | undefined) => name !== undefined && ['FAILED', 'CANCELLED'].includes(jobs[name]?.status ?? '');
  return Object.entries(jobs)
    .filter(([name, job]) => jobs[name]?.status === 'FAILED' && !job.after.some((edge) => ended(edge.name)))
    .map(([name]) => name)
    .sort();
}
