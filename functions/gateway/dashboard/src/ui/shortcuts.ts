import { useEffect, useRef } from 'react';

export interface Shortcut {
  keys: string; // "?", or "g j" for one after the other
  does: string;
  run: () => void;
}

const SEQUENCE_MS = 1200;
const active = new Set<Shortcut>();
let typed = '';
let typedAt = 0;

/** listed returns the shortcuts of the mounted components, for the keyboard help. */
export function listed(): Shortcut[] {
  return [...active];
}

/** next returns the typed keys after one more key; a pause, or a key that begins no shortcut, starts again. */
export function next(before: string, key: string, known: readonly string[]): string {
  const longer = before === '' ? key : `${before} ${key}`;
  const leads = (text: string) => known.some((keys) => keys === text || keys.startsWith(`${text} `));
  return leads(longer) ? longer : leads(key) ? key : '';
}

function takesText(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) {
    return false;
  }
  return target.isContentEditable || target.closest('input:not([type=checkbox]), textarea, select, dialog') !== null;
}

function onKeyDown(event: KeyboardEvent) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || takesText(event.target)) {
    return;
  }
  if (event.timeStamp - typedAt > SEQUENCE_MS) {
    typed = '';
  }
  typedAt = event.timeStamp;
  const known = listed();
  typed = next(typed, event.key, known.map((shortcut) => shortcut.keys));
  const found = known.find((shortcut) => shortcut.keys === typed);
  if (found) {
    event.preventDefault();
    typed = '';
    found.run();
  }
}

/** useShortcuts binds keys to actions while the component is mounted. */
export function useShortcuts(shortcuts: readonly Shortcut[]) {
  const latest = useRef(shortcuts);
  latest.current = shortcuts;
  const names = shortcuts.map((shortcut) => `${shortcut.keys}\t${shortcut.does}`).join('\n');

  useEffect(() => {
    const mine = latest.current.map((shortcut, i) => ({ ...shortcut, run: () => latest.current[i]?.run() }));
    if (active.size === 0) {
      document.addEventListener('keydown', onKeyDown);
    }
    mine.forEach((shortcut) => active.add(shortcut));
    return () => {
      mine.forEach((shortcut) => active.delete(shortcut));
      if (active.size === 0) {
        document.removeEventListener('keydown', onKeyDown);
      }
    };
  }, [names]);
}
