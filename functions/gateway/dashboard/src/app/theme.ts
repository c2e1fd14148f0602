import { useSyncExternalStore } from 'react';

export type Theme = 'system' | 'light' | 'dark';

const NAME = 'jobweaver.theme';
const listeners = new Set<() => void>();
const system = matchMedia('(prefers-color-scheme: dark)');
let theme = stored();

function stored(): Theme {
  try {
    const value = localStorage.getItem(NAME);
    return value === 'light' || value === 'dark' ? value : 'system';
  } catch {
    return 'system';
  }
}

function apply() {
  if (theme === 'system') {
    delete document.documentElement.dataset['theme'];
  } else {
    document.documentElement.dataset['theme'] = theme;
  }
}

/** startTheme applies the stored theme. */
export function startTheme() {
  apply();
  system.addEventListener('change', () => listeners.forEach((listener) => listener()));
}

export function setTheme(next: Theme) {
  theme = next;
  apply();
  try {
    localStorage.setItem(NAME, next);
  } catch {
    // it applies to this tab
  }
  listeners.forEach((listener) => listener());
}

function subscribe(listener: () => void) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useTheme(): Theme {
  return useSyncExternalStore(subscribe, () => theme);
}

/** useDark returns whether the page is dark at this moment, by choice or by the system. */
export function useDark(): boolean {
  return useSyncExternalStore(subscribe, () => theme === 'dark' || (theme === 'system' && system.matches));
}
