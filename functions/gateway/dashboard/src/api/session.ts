import { useSyncExternalStore } from 'react';

// The API key, and the owner that an admin of the installation acts for, live in the tab: in session storage where the
// browser allows it, else in memory only.
const names = { key: 'jobweaver.key', owner: 'jobweaver.owner' };
type Name = keyof typeof names;

const listeners = new Set<() => void>();
const values: Record<Name, string | null> = { key: stored('key'), owner: stored('owner') };

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
    // memory has it
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
  open: (key: string) => change({ key, owner: null }),
  close: () => change({ key: null, owner: null }),
  /** actFor has all requests made as an admin of this owner; null: as the key itself. */
  actFor: (owner: string | null) => change({ owner }),
  /** headers are what each request to the API carries. */
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

/** useOwner is the owner that the reader acts for; null where the key speaks for itself. */
export function useOwner(): string | null {
  return useSyncExternalStore(subscribe, session.owner);
}

/** A header takes printable ASCII only; anything else is certainly no key. */
export function looksLikeKey(text: string): boolean {
  return /^[!-~]+$/.test(text);
}
