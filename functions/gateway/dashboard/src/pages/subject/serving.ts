import type { Schemas } from '../../api/client';
import type { Mark } from '../../charts/FlowChart';
import type { Subject } from './queries';

/** servingOf returns the live workers of a queue or a job type, in the order of their ids. */
export function servingOf(workers: readonly Schemas['Worker'][], { kind, name }: Subject): Schemas['Worker'][] {
  return workers
    .filter((worker) => worker.live && (kind === 'queue' ? worker.queues : worker.jobTypes).includes(name))
    .sort((a, b) => a.workerId.localeCompare(b.workerId));
}

/** deploys returns when each version of the workers began: the start of its first live worker. */
export function deploys(workers: readonly Schemas['Worker'][]): Mark[] {
  const first = new Map<string, string>();
  for (const { version, startedAt } of workers) {
    const before = first.get(version);
    if (startedAt !== null && (before === undefined || startedAt < before)) {
      first.set(version, startedAt);
    }
  }
  return [...first].map(([label, at]) => ({ label, at })).sort((a, b) => a.at.localeCompare(b.at));
}
