import { useRouter, useRouterState } from '@tanstack/react-router';
import { useMemo } from 'react';
import { stringifySearch } from './paths';

/**
 * useSearch reads a page's state from its address, and returns a function that writes it there: each change is a step of the
 * browser's history. The result of `read` stays the same object as long as the address stays the same.
 */
export function useSearch<T>(read: (search: Record<string, unknown>) => T, write: (state: T) => Record<string, unknown>) {
  const router = useRouter();
  const { pathname, searchStr, search } = useRouterState({ select: (state) => state.location });
  // searchStr replaces search, which is a new object after each navigation
  const state = useMemo(() => read(search as Record<string, unknown>), [searchStr]);
  const set = (next: T) => router.history.push(pathname + stringifySearch(write(next)));
  return [state, set] as const;
}
