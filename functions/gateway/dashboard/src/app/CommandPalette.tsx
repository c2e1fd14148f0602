import { useRouter } from '@tanstack/react-router';
import { useEffect, useId, useRef, useState } from 'react';
import { useMay } from '../api/me';
import { setPaused, useLive } from '../live/live';
import { Icon } from '../ui/Icon';
import { matching, type Command } from './commands';
import { navigable } from './navigable';
import { searches } from './searches';
import { setTheme, type Theme } from './theme';
import './CommandPalette.css';

/** CommandPalette finds pages and actions by name, and jobs by the typed text. */
export function CommandPalette({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState('');
  const [chosen, setChosen] = useState(0);
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  const found = useCommands(text);
  const current = Math.min(chosen, found.length - 1);

  useEffect(() => {
    const element = dialog.current;
    element?.showModal();
    return () => element?.close();
  }, []);

  useEffect(() => {
    document.getElementById(`${id}-${current}`)?.scrollIntoView({ block: 'nearest' });
  }, [id, current]);

  const run = (command: Command | undefined) => {
    if (command) {
      onClose();
      command.run();
    }
  };

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
      <div className="palette-input">
        <Icon name="search" />
        <input
          role="combobox"
          aria-label="Search"
          aria-expanded="true"
          aria-controls={`${id}-list`}
          aria-activedescendant={found.length > 0 ? `${id}-${current}` : undefined}
          aria-autocomplete="list"
          placeholder="A page, an action, a job id, a trace id…"
          autoFocus
          value={text}
          onChange={(event) => {
            setText(event.target.value);
            setChosen(0);
          }}
          onKeyDown={(event) => {
            const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
            if (step !== undefined && found.length > 0) {
              event.preventDefault();
              setChosen((current + step + found.length) % found.length);
            } else if (event.key === 'Enter') {
              event.preventDefault();
              run(found[current]);
            }
          }}
        />
      </div>
      <ul id={`${id}-list`} className="palette-list" role="listbox" aria-label="Results">
        {found.map((command, i) => (
          <li
            key={command.name}
            id={`${id}-${i}`}
            role="option"
            aria-selected={i === current}
            onClick={() => run(command)}
            onPointerMove={() => setChosen(i)}
          >
            <Icon name={command.icon} />
            <span className="grow">{command.name}</span>
            {command.keys && <kbd>{command.keys}</kbd>}
          </li>
        ))}
      </ul>
      {found.length === 0 && <p className="palette-none muted">Nothing has this name.</p>}
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
      keys: page.nav.keys,
      run: () => router.history.push(page.path),
    })),
    {
      name: paused ? 'Resume live updates' : 'Pause live updates',
      icon: paused ? 'play' : 'pause',
      run: () => setPaused(!paused),
    },
    ...themes.map((theme) => ({
      name: `Theme: ${theme}`,
      icon: ({ system: 'system', light: 'sun', dark: 'moon' } as const)[theme],
      run: () => setTheme(theme),
    })),
  ];
  const jobs = may('read') ? searches(text, (path) => router.history.push(path)) : [];
  return [...jobs, ...matching(commands, text)];
}
