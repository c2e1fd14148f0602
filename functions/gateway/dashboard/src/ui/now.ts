import { useSyncExternalStore } from 'react';

// One clock for all relative times on the page. It stops while the page is hidden.
const listeners = new Set<() => void>();
let now = new Date();
let timer: ReturnType<typeof setInterval> | undefined;

function tick() {
  if (document.hidden) {
    return;
  }
  now = new Date();
  listeners.forEach((listener) => listener());
}

function subscribe(listener: () => void) {
  if (listeners.size === 0) {
    now = new Date();
    timer = setInterval(tick, 1000);
    document.addEventListener('visibilitychange', tick);
  }
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      clearInterval(timer);
      document.removeEventListener('visibilitychange', tick);
    }
  };
}

/** useNow returns the current time, to the second. */
export function useNow(): Date {
  return useSyncExternalStore(subscribe, () => now);
}
