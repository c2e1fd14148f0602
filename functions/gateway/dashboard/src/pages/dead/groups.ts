import type { Schemas } from '../../api/client';
import { compact, plural } from '../../format/number';
import type { Query } from '../jobs/filters';

export type Group = Schemas['DeadGroup'];

/** keyOf identifies a group among those of one response. */
export function keyOf({ jobType, errorCode }: Pick<Group, 'jobType' | 'errorCode'>): string {
  return `${jobType}\n${errorCode ?? ''}`;
}

/** codeFilterOf returns the filter of jobs, in the address, for an error code or none. */
export function codeFilterOf(errorCode: string | null): Record<string, string> {
  return errorCode === null ? { noErrorCode: 'true' } : { errorCode };
}

/** jobsOf returns the filter that lists the jobs of a group. */
export function jobsOf(group: Pick<Group, 'jobType' | 'errorCode'>, ownerId = ''): Record<string, string> {
  return { status: 'FAILED', type: group.jobType, ...codeFilterOf(group.errorCode), ...(ownerId && { ownerId }) };
}

/** targetOf returns the filter of an operation that reaches the jobs of a group, but none that is accepted from now on. */
export function targetOf({ jobType, errorCode }: Group, ownerId: string, now: Date): Query {
  return {
    status: ['FAILED'],
    type: jobType,
    ...(errorCode === null ? { noErrorCode: true as const } : { errorCode }),
    ...(ownerId && { ownerId }),
    until: now.toISOString(),
  };
}

/** lastDay returns how many jobs failed in the last 24 hours. */
export function lastDay(group: Pick<Group, 'hours'>): number {
  return group.hours.reduce((sum, n) => sum + n, 0);
}

/** historyOf describes the hours of a group in words. */
export function historyOf(group: Pick<Group, 'hours' | 'dayBefore'>): string {
  return `${plural(lastDay(group), 'failure')} in the last 24 hours, ${compact(group.dayBefore)} in the 24 hours before`;
}
