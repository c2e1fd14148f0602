import type { Schemas } from '../../api/client';

type Job = Schemas['JobSummary'];

export interface Group {
  jobType: string;
  errorCode: string | null; // null: the failure has no code
  jobIds: string[];
  example: Job; // the newest
}

/** groupsOf groups dead letters by type and error, largest group first. */
export function groupsOf(jobs: readonly Job[]): Group[] {
  const groups = new Map<string, Group>();
  for (const job of jobs) {
    const errorCode = job.lastError?.errorCode ?? null;
    const key = `${job.jobType}\n${errorCode ?? ''}`;
    const group = groups.get(key);
    if (group === undefined) {
      groups.set(key, { jobType: job.jobType, errorCode, jobIds: [job.jobId], example: job });
    } else {
      group.jobIds.push(job.jobId);
      group.example = endOf(job) > endOf(group.example) ? job : group.example;
    }
  }
  return [...groups.values()].sort((a, b) => b.jobIds.length - a.jobIds.length || endOf(b.example).localeCompare(endOf(a.example)));
}

function endOf(job: Job): string {
  return job.finishedAt ?? job.updatedAt;
}

/** filterOf returns the filter that lists the jobs of a group. */
export function filterOf({ jobType, errorCode }: Group): Record<string, string> {
  return { status: 'FAILED', type: jobType, ...(errorCode === null ? { noErrorCode: 'true' } : { errorCode }) };
}
