import { useRouter, useRouterState } from '@tanstack/react-router';
import { useMemo } from 'react';
import { stringifySearch } from './paths';

/**
 * useSearch reads a page's state from its address, and gives a function that writes it there: each change is a step of the
 * browser's history. What `read` gives stays the same object while the address does.
 */
export function useSearch<T>(read: (search: Record<string, unknown>) => T, write: (state: T) => Record<string, unknown>) {
  const router = useRouter();
  const { pathname, searchStr, search } = useRouterState({ select: (state) => state.location });
  // searchStr stands for search, which is another object on each navigation
  const state = useMemo(() => read(search as Record<string, unknown>), [searchStr]);
  const set = (next: T) => router.history.push(pathname + stringifySearch(write(next)));
  return [state, set] as const;
}
