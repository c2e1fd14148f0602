import { queryOptions } from '@tanstack/react-query';
import { answer, api, type Schemas } from './client';

// What several pages ask for. A page's own requests stand with the page.

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

/** Health answers 503 with a body of the same form, which is an answer as well as any. */
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
