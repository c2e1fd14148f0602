import { base } from '../api/base';
import { retryAfter } from '../api/error';
import { noteAnswer, noteLimit, noteSilence } from '../live/live';

const NAME = 'jobweaver.reloaded';
const PAUSE_MS = 3000;

/** MissingPart is the error of a part of the dashboard that the gateway does not have, even after a reload. */
export class MissingPart extends Error {}

/**
 * loading loads a part of the dashboard. If that fails, the gateway was upgraded and has other parts now, or it is away, or it
 * limits requests: once it answers, the document is reloaded, which refers to the present parts. If the part itself is missing,
 * it reloads once; a part that is missing after that is an error.
 */
export function loading<T>(load: () => Promise<T>): () => Promise<T> {
  return async () => {
    try {
      const part = await load();
      setReloaded(false);
      return part;
    } catch (error) {
      const url = /https?:\/\/\S+/.exec(String(error))?.[0] ?? `${base}/`; // browsers name the file in the error
      let limited = false;
      for (;;) {
        const { status, waitMs } = await look(url);
        if (status === 404 || (status >= 200 && status < 300)) {
          break;
        }
        limited ||= status === 429;
        await new Promise((resolve) => setTimeout(resolve, waitMs));
      }
      if (!limited && reloaded()) {
        throw new MissingPart('a file of the dashboard is missing', { cause: error });
      }
      setReloaded(!limited);
      location.reload();
      return new Promise(() => undefined); // this document ends here
    }
  };
}

/** look returns the status with which the gateway answers a request for a file, and how long to wait after a refusal. */
async function look(url: string): Promise<{ status: number; waitMs: number }> {
  try {
    const response = await fetch(url, { headers: { Accept: '*/*, text/html' }, cache: 'no-store', signal: AbortSignal.timeout(10_000) });
    noteAnswer();
    if (response.status !== 429) {
      return { status: response.status, waitMs: PAUSE_MS };
    }
    const seconds = retryAfter(response);
    noteLimit(seconds);
    return { status: 429, waitMs: 1000 * seconds };
  } catch {
    noteSilence();
    return { status: 0, waitMs: PAUSE_MS };
  }
}

function reloaded(): boolean {
  try {
    return sessionStorage.getItem(NAME) !== null;
  } catch {
    return true; // without storage, reloads could repeat forever
  }
}

function setReloaded(is: boolean) {
  try {
    if (is) {
      sessionStorage.setItem(NAME, 'yes');
    } else {
      sessionStorage.removeItem(NAME);
    }
  } catch {
    // reloaded() handles it
  }
}
