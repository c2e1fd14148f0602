import { base } from '../api/base';
import { noteAnswer, noteSilence } from '../live/live';

const NAME = 'jobweaver.reloaded';
const PAUSE_MS = 3000;

/** MissingPart is the error of a part of the dashboard that the gateway does not have, even after a reload. */
export class MissingPart extends Error {}

/**
 * loading loads a part of the dashboard. If that fails, the gateway was upgraded and has other parts now, or it is away: once
 * it answers, the document is reloaded, which refers to the present parts. It reloads once; a part that is missing after that
 * is an error.
 */
export function loading<T>(load: () => Promise<T>): () => Promise<T> {
  return async () => {
    try {
      const part = await load();
      setReloaded(false);
      return part;
    } catch (error) {
      if (reloaded()) {
        throw new MissingPart('a file of the dashboard is missing', { cause: error });
      }
      while (!(await documentAnswers())) {
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      }
      setReloaded(true);
      location.reload();
      return new Promise(() => undefined); // this document ends here
    }
  };
}

async function documentAnswers(): Promise<boolean> {
  try {
    const { ok } = await fetch(`${base}/`, { headers: { Accept: 'text/html' }, cache: 'no-store', signal: AbortSignal.timeout(10_000) });
    noteAnswer();
    return ok;
  } catch {
    noteSilence();
    return false;
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
