import { useRouter } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import { useMay } from '../api/me';
import { setTimes, TIMES } from '../format/times';
import { setPaused, useLive } from '../live/live';
import { Combobox } from '../ui/Combobox';
import { Icon } from '../ui/Icon';
import { matching, type Command } from './commands';
import { useFound } from './finding';
import { navigable } from './navigable';
import { searches } from './searches';
import { setTheme, type Theme } from './theme';
import './CommandPalette.css';

/** CommandPalette finds pages and actions by name, what has a typed name or id, and jobs by the typed text. */
export function CommandPalette({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState('');
  const dialog = useRef<HTMLDialogElement>(null);
  const found = useCommands(text);

  useEffect(() => {
    const element = dialog.current;
    element?.showModal();
    return () => element?.close();
  }, []);

  return (
    <dialog
      ref={dialog}
      className="palette"
      aria-label="Search and go anywhere"
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => {
        if (event.target === dialog.current) {
          onClose();
        }
      }}
    >
      <Icon name="search" />
      <Combobox
        label="Search"
        placeholder="A page, a type, a queue, a schedule, an owner, any id, status:failed since:yesterday…"
        autoFocus
        value={text}
        onChange={setText}
        options={found}
        onPick={(command) => {
          onClose();
          command.run();
        }}
        none="Nothing has this name."
      />
    </dialog>
  );
}

function useCommands(text: string): Command[] {
  const may = useMay();
  const router = useRouter();
  const { paused } = useLive();
  const themes: Theme[] = ['system', 'light', 'dark'];
  const commands: Command[] = [
    ...navigable(may).map((page) => ({
      name: `Go to ${page.title}`,
      icon: page.nav.icon,
      hint: page.nav.keys,
      run: () => router.history.push(page.path),
    })),
    {
      name: paused ? 'Resume live updates' : 'Pause live updates',
      icon: paused ? 'play' : 'pause',
      run: () => setPaused(!paused),
    },
    ...TIMES.map(({ value, label }) => ({ name: `Times: ${label}`, icon: 'clock' as const, run: () => setTimes(value) })),
    ...themes.map((theme) => ({
      name: `Theme: ${theme}`,
      icon: ({ system: 'system', light: 'sun', dark: 'moon' } as const)[theme],
      run: () => setTheme(theme),
    })),
  ];
  const go = (path: string) => router.history.push(path);
  const found = useFound(text, go);
  const jobs = may('read') ? searches(text, go) : [];
  const pages = matching(commands, text);
  return text.includes(':') ? [...jobs, ...found, ...pages] : [...found, ...pages, ...jobs];
}
