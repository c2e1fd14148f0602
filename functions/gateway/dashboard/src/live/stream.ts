import { retryAfter } from '../api/error';
import { fresh } from '../api/renewal';
import { session } from '../api/session';
import { eventParser, type StreamEvent } from './events';
import { noteAnswer, noteSilence } from './live';

const FIRST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 30_000;
const SILENCE_MS = 40_000; // the gateway sends a comment every 15 s

interface Callbacks {
  onEvent: (event: StreamEvent) => void;
  onState: (connected: boolean) => void;
}

/**
 * follow reads a stream of the API until it is stopped. It reconnects with the id of the last event, so that no change is
 * missed unnoticed: changes that can no longer be sent cause a `reload`.
 */
export function follow(path: string, { onEvent, onState }: Callbacks): () => void {
  const stopped = new AbortController();
  void repeat(path, onEvent, onState, stopped.signal);
  return () => stopped.abort();
}

async function repeat(path: string, onEvent: Callbacks['onEvent'], onState: Callbacks['onState'], stopped: AbortSignal) {
  let lastId = '';
  let wait = FIRST_WAIT_MS;
  while (!stopped.aborted) {
    const { opened, refusedMs } = await once(path, lastId, stopped, onState, (event) => {
      lastId = event.id || lastId;
      onEvent(event);
    });
    onState(false);
    wait = Math.max(refusedMs, opened ? FIRST_WAIT_MS : Math.min(wait * 2, LONGEST_WAIT_MS));
    await pause(wait * (0.75 + Math.random() / 2), stopped); // so that tabs do not reconnect at the same moment
  }
}

/** once reads one connection to its end. It returns whether the gateway opened it, or for how long it refuses to. */
async function once(
  path: string,
  lastId: string,
  stopped: AbortSignal,
  onState: Callbacks['onState'],
  onEvent: Callbacks['onEvent'],
): Promise<{ opened: boolean; refusedMs: number }> {
  const silent = new AbortController();
  let timer = setTimeout(() => silent.abort(), SILENCE_MS);
  let opened = false;
  try {
    await fresh();
    const response = await fetch(path, { headers: headers(lastId), signal: AbortSignal.any([stopped, silent.signal]), cache: 'no-store' });
    noteAnswer();
    if (!response.ok || response.body === null) {
      // too many streams of this owner, or the database is away: polling continues meanwhile
      return { opened, refusedMs: response.status === 429 ? 1000 * retryAfter(response) : 0 };
    }
    opened = true;
    onState(true);
    const parse = eventParser(onEvent);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) {
        return { opened, refusedMs: 0 };
      }
      clearTimeout(timer);
      timer = setTimeout(() => silent.abort(), SILENCE_MS);
      parse(value);
    }
  } catch {
    if (!stopped.aborted) {
      noteSilence();
    }
    return { opened, refusedMs: 0 };
  } finally {
    clearTimeout(timer);
  }
}

function headers(lastId: string): Record<string, string> {
  return {
    Accept: 'text/event-stream',
    ...session.headers(),
    ...(lastId !== '' && { 'Last-Event-ID': lastId }),
  };
}

function pause(ms: number, stopped: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    stopped.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
