import { useSyncExternalStore } from 'react';

/** Times is how times are shown: as a distance from now, or as an instant of the browser's time zone or of UTC. */
export type Times = 'relative' | 'local' | 'utc';

export const TIMES: readonly { value: Times; label: string }[] = [
  { value: 'relative', label: 'Relative' },
  { value: 'local', label: 'Local' },
  { value: 'utc', label: 'UTC' },
];

const NAME = 'jobweaver.times';
const listeners = new Set<() => void>();
let current = stored();

function stored(): Times {
  try {
    const value = localStorage.getItem(NAME);
    return TIMES.find((times) => times.value === value)?.value ?? 'relative';
  } catch {
    return 'relative';
  }
}

export function times(): Times {
  return current;
}

export function setTimes(next: Times) {
  current = next;
  try {
    localStorage.setItem(NAME, next);
  } catch {
    // it applies to this tab
  }
  listeners.forEach((listener) => listener());
}

function subscribe(listener: () => void) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** useTimes returns how times are shown. A component that formats an instant calls it, so that it follows the user's choice. */
export function useTimes(): Times {
  return useSyncExternalStore(subscribe, times);
}
