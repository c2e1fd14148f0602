import { queryOptions } from '@tanstack/react-query';
import { answer, api, type Schemas } from './client';

// Queries of several pages. The queries of a single page are in its folder.

export const statsQuery = queryOptions({
  queryKey: ['stats'],
  queryFn: ({ signal }) => answer(api.GET('/api/stats', { signal })),
});

export const workersQuery = queryOptions({
  queryKey: ['workers'],
  queryFn: ({ signal }) => answer(api.GET('/api/workers', { signal })),
});

export const controlsQuery = queryOptions({
  queryKey: ['controls'],
  queryFn: ({ signal }) => answer(api.GET('/api/controls', { signal })),
});

export const jobTypesQuery = queryOptions({
  queryKey: ['job-types'],
  queryFn: ({ signal }) => answer(api.GET('/api/job-types', { signal })),
  staleTime: 30_000,
});

/** A 503 of the health endpoint has a body of the same form, and is no error. */
export const healthQuery = queryOptions({
  queryKey: ['health'],
  queryFn: async ({ signal }): Promise<Schemas['Health']> => {
    const result = await api.GET('/api/health', { signal });
    if (result.response.status === 503 && result.error && 'components' in result.error) {
      return result.error;
    }
    return answer(Promise.resolve(result));
  },
});
