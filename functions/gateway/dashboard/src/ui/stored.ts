import { useState } from 'react';

/** useStored returns a state that the browser stores as JSON. valid reports whether the stored value can still be used. */
export function useStored<T>(name: string, initial: T, valid: (value: unknown) => value is T): [T, (next: T) => void] {
  const [value, setValue] = useState(() => read(name, initial, valid));
  const set = (next: T) => {
    setValue(next);
    try {
      localStorage.setItem(name, JSON.stringify(next));
    } catch {
      // it lasts until the page is closed
    }
  };
  return [value, set];
}

function read<T>(name: string, initial: T, valid: (value: unknown) => value is T): T {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(name) ?? 'null');
    return valid(value) ? value : initial;
  } catch {
    return initial;
  }
}

export function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}
