import type { RefObject } from 'react';
import { useShortcuts, type Shortcut } from '../../ui/shortcuts';
import { toast } from '../../ui/toasts';

const LINK = 'a.job-link';

/**
 * useRowKeys binds keys to the rows of a table: j and k move the focus from link to link, so that Enter opens the job, and the
 * other keys act on the row that has the focus.
 */
export function useRowKeys(body: RefObject<HTMLElement | null>, selectable: boolean) {
  const row = () => {
    const active = document.activeElement?.closest('tr');
    return active && body.current?.contains(active) ? active : null;
  };
  const move = (step: number) => {
    const links = [...(body.current?.querySelectorAll<HTMLElement>(LINK) ?? [])];
    const current = row()?.querySelector<HTMLElement>(LINK);
    const shown = links.find((link) => link.getBoundingClientRect().top > 0);
    (current ? links[links.indexOf(current) + step] : shown)?.focus();
  };
  const copy = () => {
    const id = row()?.dataset['id'];
    if (id !== undefined) {
      void navigator.clipboard?.writeText(id).then(() => toast(`Copied the id ${id}.`));
    }
  };
  const keys: Shortcut[] = [
    { keys: 'j', does: 'Next job; Enter opens it', run: () => move(1) },
    { keys: 'k', does: 'Previous job', run: () => move(-1) },
    { keys: 'c', does: 'Copy the id of the job', run: copy },
  ];
  if (selectable) {
    keys.push({ keys: 'x', does: 'Select the job', run: () => row()?.querySelector<HTMLElement>('input[type=checkbox]')?.click() });
  }
  useShortcuts(keys);
}
