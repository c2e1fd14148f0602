import { useSyncExternalStore } from 'react';
import type { Renewal, Tokens } from './oidc';
import { userOf } from './token';

// The API key belongs to the tab: it is in session storage if the browser allows it, else only in memory. The owner for which an
// admin of the installation acts is in the address.
// So do the times, in milliseconds, of the login, of the last input, and of the last time that the user gave the key, and what
// renews the token of an issuer: the key stays the token of the login, by which the page knows its data.
const names = {
  key: 'jobweaver.key',
  opened: 'jobweaver.opened',
  used: 'jobweaver.used',
  proved: 'jobweaver.proved',
  renewal: 'jobweaver.renewal',
};
type Name = keyof typeof names;

export const IDLE_MINUTES = 30;
export const SESSION_HOURS = 12;
const PROOF_MINUTES = 5;
const MINUTE_MS = 60_000;
const CHECK_MS = 5_000;
const RENEWED_AFTER = 0.75; // of the life of a token

/** Renewable is the newest token of the session, and when and how the next one is got. */
interface Renewable {
  token: string;
  renewal: Renewal | null; // null: the user has to log in
  dueAt: number;
}

function renewable({ token, renewal, lifeMs }: Tokens): string {
  const known: Renewable = { token, renewal: lifeMs === null ? null : renewal, dueAt: Date.now() + RENEWED_AFTER * (lifeMs ?? 0) };
  return JSON.stringify(known);
}

const newest = () => (values.renewal === null ? null : (JSON.parse(values.renewal) as Renewable));

const CHANNEL = 'jobweaver.logout';

/** ofAllOwners are the headers of a request for which the user acts for no owner. */
export const ofAllOwners = { 'X-Owner-Id': '' };

const listeners = new Set<() => void>();
let owner: string | null = null;

/** Ended is why a session has ended without the user: the key is refused, or it was not used for too long. */
export type Ended = 'refused' | 'unused';
let ended: Ended | null = null;
const values: Record<Name, string | null> = {
  key: stored('key'),
  opened: stored('opened') ?? String(Date.now()),
  used: stored('used') ?? String(Date.now()),
  proved: stored('proved'),
  renewal: stored('renewal'),
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
  owner: () => owner,
  open(key: string, tokens?: Tokens) {
    const now = String(Date.now());
    ended = null;
    change({ key, opened: now, used: now, proved: now, renewal: tokens === undefined ? null : renewable(tokens) });
  },
  close(why: Ended | null = null) {
    ended = values.key === null ? ended : why;
    change({ key: null, opened: null, used: null, proved: null, renewal: null });
  },
  ended: () => ended,
  /** logOut ends the sessions of this user in all tabs. */
  logOut() {
    if (values.key !== null) {
      const tabs = new BroadcastChannel(CHANNEL);
      tabs.postMessage(userOf(values.key));
      tabs.close();
    }
    session.close();
  },
  /** due returns what renews the token, if it ends soon. */
  due(now: number): Renewal | null {
    const known = newest();
    return known !== null && now >= known.dueAt ? known.renewal : null;
  },
  /** renewed keeps the next token; null: the issuer gives no more. */
  renewed(tokens: Tokens | null) {
    const known = newest();
    if (known !== null) { // the session may have ended meanwhile
      set('renewal', tokens === null ? JSON.stringify({ ...known, renewal: null }) : renewable(tokens));
    }
  },
  renewLater(ms: number) {
    const known = newest();
    if (known !== null) {
      set('renewal', JSON.stringify({ ...known, dueAt: Date.now() + ms }));
    }
  },
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
  /** watch ends the session when it is over, or the user logs out in another tab. It returns a function that stops to watch. */
  watch(): () => void {
    const check = () => {
      if (values.key !== null && isOver(Number(values.opened), Number(values.used), Date.now())) {
        session.close('unused');
      }
    };
    const use = () => {
      check(); // input after the limit must not prolong the session
      if (values.key !== null) {
        set('used', String(Date.now()));
      }
    };
    const tabs = new BroadcastChannel(CHANNEL);
    tabs.onmessage = ({ data }) => values.key !== null && userOf(values.key) === data && session.close();
    check();
    const timer = setInterval(check, CHECK_MS);
    const inputs = ['pointerdown', 'keydown'] as const;
    inputs.forEach((name) => addEventListener(name, use, { capture: true }));
    return () => {
      clearInterval(timer);
      tabs.close();
      inputs.forEach((name) => removeEventListener(name, use, { capture: true }));
    };
  },
  /** actFor makes all requests act for this owner; null: for the owner of the key. */
  actFor(next: string | null) {
    if (owner !== next) {
      owner = next;
      change({});
    }
  },
  /** headers returns the headers of each request to the API. */
  headers(): Record<string, string> {
    const token = newest()?.token ?? values.key;
    return {
      ...(token !== null && { Authorization: `Bearer ${token}` }),
      // fetch takes characters as bytes, and the gateway reads UTF-8
      ...(owner !== null && { 'X-Owner-Id': String.fromCharCode(...new TextEncoder().encode(owner)) }),
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
