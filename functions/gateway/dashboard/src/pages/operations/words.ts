import type { Schemas } from '../../api/client';
import { plural } from '../../format/number';

export type Operation = Schemas['OperationFields'];

/** target describes the jobs of an operation in words. */
export function target({ jobs, filter }: Pick<Operation, 'jobs' | 'filter'>): string {
  if (jobs !== null) {
    return `${plural(jobs, 'job')} of a list`;
  }
  const conditions = Object.entries(filter ?? {})
    .filter(([name]) => name !== 'all')
    .map(([name, value]) => `${name} ${Array.isArray(value) ? value.join(' or ') : String(value)}`);
  return conditions.length === 0 ? 'all jobs' : `jobs with ${conditions.join(', ')}`;
}

/** answered returns how many jobs an operation has reached, and for how many of them it is done. */
export function answered({ progress }: Pick<Operation, 'progress'>): { done: number; of: number } {
  return { done: progress.applied + progress.refused + progress.skipped, of: progress.matched };
}

export function ended({ status }: Pick<Operation, 'status'>): boolean {
  return status === 'COMPLETED' || status === 'ABORTED';
}
