import { useEffect, useRef, useState, useSyncExternalStore } from 'react';
import { base } from '../api/base';
import { stringifySearch } from '../app/paths';
import type { StreamEvent } from './events';
import { useLive } from './live';
import { follow } from './stream';
import { throttle } from './throttle';

function onVisibility(listener: () => void) {
  document.addEventListener('visibilitychange', listener);
  return () => document.removeEventListener('visibilitychange', listener);
}

/**
 * useStream follows changes of jobs while the tab is visible and updates are live, and returns whether it is connected. query
 * has the parameters of GET /api/stream; null follows nothing.
 */
export function useStream(query: Record<string, unknown> | null, onEvent: (event: StreamEvent) => void): boolean {
  const { paused } = useLive();
  const visible = useSyncExternalStore(onVisibility, () => !document.hidden);
  const [connected, setConnected] = useState(false);
  const latest = useRef(onEvent);
  latest.current = onEvent;
  const path = query === null ? null : `${base}/api/stream${stringifySearch(query)}`;

  useEffect(() => {
    if (path === null || paused || !visible) {
      return;
    }
    const stop = follow(path, { onEvent: (event) => latest.current(event), onState: setConnected });
    return () => {
      stop();
      setConnected(false);
    };
  }, [path, paused, visible]);

  return connected;
}

/** useThrottled returns a function that runs at most once in ms milliseconds, and not after the component is gone. */
export function useThrottled(ms: number, run: () => void): () => void {
  const latest = useRef(run);
  latest.current = run;
  const [throttled] = useState(() => throttle(ms, () => latest.current()));
  useEffect(() => throttled.stop, [throttled]);
  return throttled.call;
}
