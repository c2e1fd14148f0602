import { useSyncExternalStore } from 'react';

// The API key, and the owner for which an admin of the installation acts, belong to the tab: they are in session storage if the
// browser allows it, else only in memory.
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
  open: (key: string) => change({ key, owner: null }),
  close: () => change({ key: null, owner: null }),
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
