import { useSyncExternalStore } from 'react';

// The API key, and the owner for which an admin of the installation acts, belong to the tab: they are in session storage if the
// browser allows it, else only in memory.
// So do the times, in milliseconds, of the login, of the last input, and of the last time that the user gave the key.
const names = {
  key: 'jobweaver.key',
  owner: 'jobweaver.owner',
  opened: 'jobweaver.opened',
  used: 'jobweaver.used',
  proved: 'jobweaver.proved',
};
type Name = keyof typeof names;

export const IDLE_MINUTES = 30;
export const SESSION_HOURS = 12;
const PROOF_MINUTES = 5;
const MINUTE_MS = 60_000;
const CHECK_MS = 5_000;

const listeners = new Set<() => void>();
const values: Record<Name, string | null> = {
  key: stored('key'),
  owner: stored('owner'),
  opened: stored('opened') ?? String(Date.now()),
  used: stored('used') ?? String(Date.now()),
  proved: stored('proved'),
};

/** isOver reports whether a session has ended: after 30 minutes without input, or 12 hours after the login. */
export function isOver(opened: number, used: number, now: number): boolean {
  return now - used >= IDLE_MINUTES * MINUTE_MS || now - opened >= SESSION_HOURS * 60 * MINUTE_MS;
}

function stored(name: Name): string | null {
  try {
    return sessionStorage.getItem(names[name]);
  } catch {
    return null;
  }
}

function set(name: Name, next: string | null) {
  values[name] = next;
  try {
    if (next === null) {
      sessionStorage.removeItem(names[name]);
    } else {
      sessionStorage.setItem(names[name], next);
    }
  } catch {
    // it is in memory
  }
}

function change(next: Partial<Record<Name, string | null>>) {
  for (const [name, value] of Object.entries(next)) {
    set(name as Name, value);
  }
  listeners.forEach((listener) => listener());
}

export const session = {
  key: () => values.key,
  owner: () => values.owner,
  open(key: string) {
    const now = String(Date.now());
    change({ key, owner: null, opened: now, used: now, proved: now });
  },
  close: () => change({ key: null, owner: null, opened: null, used: null, proved: null }),
  /** isProved reports whether the user has given the key, or logged in at the issuer, within the last minutes. */
  isProved: () => values.key === null || Date.now() - Number(values.proved) < PROOF_MINUTES * MINUTE_MS,
  /** prove reports whether the text is the key of the session. */
  prove(text: string): boolean {
    if (text !== values.key) {
      return false;
    }
    set('proved', String(Date.now()));
    return true;
  },
  /** watch ends the session when it is over. It returns a function that stops to watch. */
  watch(): () => void {
    const check = () => {
      if (values.key !== null && isOver(Number(values.opened), Number(values.used), Date.now())) {
        session.close();
      }
    };
    const use = () => {
      check(); // input after the limit must not prolong the session
      if (values.key !== null) {
        set('used', String(Date.now()));
      }
    };
    check();
    const timer = setInterval(check, CHECK_MS);
    const inputs = ['pointerdown', 'keydown'] as const;
    inputs.forEach((name) => addEventListener(name, use, { capture: true }));
    return () => {
      clearInterval(timer);
      inputs.forEach((name) => removeEventListener(name, use, { capture: true }));
    };
  },
  /** actFor makes all requests act for this owner; null: for the owner of the key. */
  actFor: (owner: string | null) => change({ owner }),
  /** headers returns the headers of each request to the API. */
  headers(): Record<string, string> {
    return {
      ...(values.key !== null && { Authorization: `Bearer ${values.key}` }),
      // fetch takes characters as bytes, and the gateway reads UTF-8
      ...(values.owner !== null && { 'X-Owner-Id': String.fromCharCode(...new TextEncoder().encode(values.owner)) }),
    };
  },
};

function subscribe(listener: () => void) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useKey(): string | null {
  return useSyncExternalStore(subscribe, session.key);
}

/** useOwner returns the owner for which the user acts; null: the owner of the key. */
export function useOwner(): string | null {
  return useSyncExternalStore(subscribe, session.owner);
}

/** looksLikeKey reports whether a text can be a key: a header can have only printable ASCII. */
export function looksLikeKey(text: string): boolean {
  return /^[!-~]+$/.test(text);
}
