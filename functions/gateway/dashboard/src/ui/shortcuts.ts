import { useEffect, useRef } from 'react';

export interface Shortcut {
  keys: string; // "?" or, one after the other, "g j"
  does: string;
  run: () => void;
}

const SEQUENCE_MS = 1200;
const active = new Set<Shortcut>();
let typed = '';
let typedAt = 0;

/** listed are the shortcuts of what is on the screen, for the keyboard help. */
export function listed(): Shortcut[] {
  return [...active];
}

/** next gives what has been typed so far after one more key; a pause, or a key that leads nowhere, starts anew. */
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

/** useShortcuts makes keys do something while the component is on the screen. */
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
