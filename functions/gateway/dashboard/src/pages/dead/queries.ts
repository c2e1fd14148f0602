import { queryOptions } from '@tanstack/react-query';
import { answer, api } from '../../api/client';
import { toDeadQuery, type DeadFilters } from './filters';

/** MOST is how many groups a response has. */
const MOST = 200;

/** deadGroupsQuery counts the FAILED jobs that match by type and error code; purpose keeps the result apart from that of others. */
export const deadGroupsQuery = (filters: DeadFilters, purpose = 'list') =>
  queryOptions({
    queryKey: ['dead', purpose, filters],
    queryFn: ({ signal }) =>
      answer(api.GET('/api/jobs/dead/groups', { params: { query: { ...toDeadQuery(filters, new Date()), limit: MOST } }, signal })),
  });
