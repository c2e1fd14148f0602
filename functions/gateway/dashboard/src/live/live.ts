import { useSyncExternalStore } from 'react';

export interface Live {
  paused: boolean; // by the user
  failingSince: Date | null; // no response of the gateway since then
  slowedUntil: Date | null; // the gateway refuses further requests until then
}

const listeners = new Set<() => void>();
let live: Live = { paused: false, failingSince: null, slowedUntil: null };
let slowed: ReturnType<typeof setTimeout> | undefined;

function change(to: Partial<Live>) {
  live = { ...live, ...to };
  listeners.forEach((listener) => listener());
}

/** setPaused stops or resumes all updates that the user did not request. */
export function setPaused(paused: boolean) {
  change({ paused });
}

/** noteAnswer is called after each response of the gateway. */
export function noteAnswer() {
  if (live.failingSince !== null) {
    change({ failingSince: null });
  }
}

/** noteLimit is called when the gateway refuses a request because there were too many, with the time until it takes another. */
export function noteLimit(seconds: number) {
  const until = new Date(Date.now() + seconds * 1000);
  if (live.slowedUntil !== null && live.slowedUntil >= until) {
    return;
  }
  clearTimeout(slowed);
  slowed = setTimeout(() => change({ slowedUntil: null }), seconds * 1000);
  change({ slowedUntil: until });
}

export function isSlowed(): boolean {
  return live.slowedUntil !== null;
}

/** noteSilence is called when a request got no response. */
export function noteSilence() {
  if (live.failingSince === null) {
    change({ failingSince: new Date() });
  }
}

function subscribe(listener: () => void) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useLive(): Live {
  return useSyncExternalStore(subscribe, () => live);
}

/** usePolling returns the refetchInterval of a query that is repeated every everyMs while updates are live. */
export function usePolling(everyMs: number): number | false {
  const { paused, slowedUntil } = useLive();
  return paused || slowedUntil !== null ? false : everyMs;
}
