import { QueryClient } from '@tanstack/react-query';
import { asApiError } from '../api/error';

/** mayGetBetter returns whether the same request may succeed later: after no response, a rate limit, or a database that is away. */
export function mayGetBetter(error: unknown): boolean {
  const { status } = asApiError(error);
  return status === 0 || status === 429 || status >= 500;
}

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      retry: (failures, error) => failures < 2 && mayGetBetter(error),
      retryDelay: (failures, error) => {
        const { status, retryAfterSeconds } = asApiError(error);
        return status === 429 ? 1000 * (retryAfterSeconds ?? 1) : 1000 * 2 ** failures;
      },
      networkMode: 'always', // a browser without Internet still reaches a gateway on its own machine
      staleTime: 2000,
      refetchIntervalInBackground: false, // a hidden tab sends no requests
    },
    mutations: { retry: false, networkMode: 'always' },
  },
});
