import { useSyncExternalStore } from 'react';

export interface Toast {
  id: number;
  text: string;
  tone: 'done' | 'problem';
  action?: { label: string; run: () => void };
  detail?: string;
}

const SHOWN_MS = 8000;
const listeners = new Set<() => void>();
let toasts: readonly Toast[] = [];
let next = 1;

function change(to: readonly Toast[]) {
  toasts = to;
  listeners.forEach((listener) => listener());
}

export function dismiss(id: number) {
  change(toasts.filter((toast) => toast.id !== id));
}

/** toast shows the result of an action. A problem stays until it is dismissed; other toasts disappear, later if they have an action. */
export function toast(text: string, options: Partial<Pick<Toast, 'tone' | 'action' | 'detail'>> = {}) {
  const id = next++;
  change([...toasts.slice(-2), { id, text, tone: options.tone ?? 'done', ...options }]);
  if (options.tone !== 'problem') {
    setTimeout(() => dismiss(id), options.action ? 2 * SHOWN_MS : SHOWN_MS);
  }
}

function subscribe(listener: () => void) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useToasts(): readonly Toast[] {
  return useSyncExternalStore(subscribe, () => toasts);
}
