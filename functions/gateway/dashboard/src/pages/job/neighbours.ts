import { queryOptions } from '@tanstack/react-query';
import { answer, api, type Schemas } from '../../api/client';
import type { Job } from './queries';

type Summary = Schemas['JobSummary'];

const NEAR = 3; // neighbours on each side
const LOOKED_AT = 200; // jobs of one page
const MOST_PAGES = 10;

export interface Neighbours {
  before: Summary[]; // in the order in which they run, nearest last
  after: Summary[]; // nearest first
}

/** key returns the filter for an ordering key: each owner has its own keys, so the owner is part of it. */
function key(job: Job) {
  return { orderingKey: job.orderingKey ?? '', ...(job.ownerId !== null && { ownerId: job.ownerId }) };
}

type Ask = (query: Record<string, unknown>) => Promise<Pick<Schemas['JobPage'], 'jobs' | 'nextCursor'>>;

/** neighboursQuery reads the jobs with the same ordering key that were accepted just before and just after this one. */
export const neighboursQuery = (job: Job) =>
  queryOptions({
    queryKey: ['job', job.jobId, 'neighbours'],
    queryFn: async ({ signal }): Promise<Neighbours> => {
      const ask: Ask = (query) => answer(api.GET('/api/jobs', { params: { query: { ...key(job), ...query } }, signal }));
      const [before, after] = await Promise.all([ask({ cursor: job.jobId, limit: NEAR }), nextOf(job, ask)]);
      return { before: before.jobs.toReversed(), after };
    },
    enabled: job.orderingKey !== null,
  });

/** SPANS are the times after a job, in ms, in which the next jobs are searched if there are many later ones. */
const SPANS = [1000, 60_000, 3_600_000, 86_400_000, 2_592_000_000];

/** nextOf returns the jobs accepted next, first one first. The list begins with the newest jobs, so it is read for short spans. */
export async function nextOf({ jobId, createdAt }: Pick<Job, 'jobId' | 'createdAt'>, ask: Ask): Promise<Summary[]> {
  const all = await ask({ since: createdAt, limit: LOOKED_AT });
  let last = nearest(all.jobs, jobId);
  if (all.nextCursor === null) {
    return last;
  }
  last = [];
  for (const span of SPANS) {
    const until = new Date(Date.parse(createdAt) + span).toISOString();
    const later = await pages((query) => ask({ since: createdAt, until, ...query }));
    if (later === null) {
      return last;
    }
    last = nearest(later, jobId);
    if (last.length === NEAR) {
      return last;
    }
  }
  return last;
}

/** pages returns the jobs of all pages; null if there are too many. */
async function pages(ask: Ask): Promise<Summary[] | null> {
  const jobs: Summary[] = [];
  let cursor: string | null = null;
  for (let page = 0; page < MOST_PAGES; page++) {
    const body: Awaited<ReturnType<Ask>> = await ask({ limit: LOOKED_AT, ...(cursor !== null && { cursor }) });
    jobs.push(...body.jobs);
    cursor = body.nextCursor;
    if (cursor === null) {
      return jobs;
    }
  }
  return null;
}

/** nearest returns the jobs, given newest first, that follow a job. Ids rise in the order of acceptance. */
export function nearest(jobs: Summary[], jobId: string): Summary[] {
  return jobs.toReversed().filter((other) => other.jobId > jobId).slice(0, NEAR);
}

/** followersQuery reads the newest jobs that depend on this one. */
export const followersQuery = (job: Job) =>
  queryOptions({
    queryKey: ['job', job.jobId, 'followers'],
    queryFn: ({ signal }) => answer(api.GET('/api/jobs', { params: { query: { after: job.jobId, limit: LOOKED_AT } }, signal })),
  });
