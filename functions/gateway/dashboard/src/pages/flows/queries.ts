import { queryOptions } from '@tanstack/react-query';
import { answer, api, type Schemas } from '../../api/client';
import type { Flow } from '../batches/queries';

export type Summary = Schemas['JobSummary'];

const PAGE = 200;
const PAGES = 5; // of the jobs of a flow

/** summariesQuery reads times and errors of the jobs of a flow: of those that failed, and of the newest thousand. */
export const summariesQuery = ({ flowId, run, finishedAt }: Pick<Flow, 'flowId' | 'run' | 'finishedAt'>) =>
  queryOptions({
    queryKey: ['flows', flowId, 'jobs', run, finishedAt],
    queryFn: async ({ signal }) => {
      const read = (more: object) =>
        answer(api.GET('/api/jobs', { params: { query: { batchId: flowId, limit: PAGE, ...more } }, signal }));
      const found = new Map<string, Summary>();
      const keep = (jobs: Summary[]) => jobs.forEach((job) => found.set(job.jobId, job));
      let page = await read({});
      keep(page.jobs);
      for (let n = 1; n < PAGES && page.nextCursor !== null; n++) {
        page = await read({ cursor: page.nextCursor });
        keep(page.jobs);
      }
      if (page.nextCursor !== null) {
        keep((await read({ status: ['FAILED'] })).jobs);
      }
      return found;
    },
  });
