import { useEffect, useId, useState, type InputHTMLAttributes, type KeyboardEvent, type Ref } from 'react';
import { Icon, type IconName } from './Icon';
import './Combobox.css';

export interface Option {
  name: string; // also its key
  hint?: string;
  icon?: IconName;
}

interface Props<T extends Option> extends Omit<InputHTMLAttributes<HTMLInputElement>, 'onChange' | 'value'> {
  label: string;
  value: string;
  onChange: (value: string) => void;
  options: readonly T[];
  onPick: (option: T) => void;
  /** Enter without a chosen option; absent: the first option is chosen at first */
  onEnter?: () => void;
  /** the options hang below the field while it has the focus, and do not take up space */
  floating?: boolean;
  none?: string; // shown in place of options
  inputRef?: Ref<HTMLInputElement>;
}

/** Combobox is a text field with suggestions: the arrows choose one, Enter or a click takes it, Escape hides those that float. */
export function Combobox<T extends Option>({ label, value, onChange, options, onPick, onEnter, floating = false, none, inputRef, ...rest }: Props<T>) {
  const first = onEnter ? -1 : 0;
  const [chosen, setChosen] = useState(first);
  const [open, setOpen] = useState(!floating);
  const id = useId();
  const current = Math.min(chosen, options.length - 1);
  const shown = open && options.length > 0;

  useEffect(() => {
    document.getElementById(`${id}-${current}`)?.scrollIntoView({ block: 'nearest' });
  }, [id, current]);

  const change = (next: string) => {
    setChosen(first);
    setOpen(true);
    onChange(next);
  };
  const pick = (option: T) => {
    setChosen(first);
    onPick(option);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const option = shown ? options[current] : undefined;
    if (step !== undefined && options.length > 0) {
      event.preventDefault();
      setOpen(true);
      setChosen(shown ? (current + step + options.length + Number(current < 0 && step < 0)) % options.length : Math.max(first, 0));
    } else if ((event.key === 'Enter' || (event.key === 'Tab' && floating && !event.shiftKey)) && option) {
      event.preventDefault();
      pick(option);
    } else if (event.key === 'Enter' && onEnter) {
      event.preventDefault();
      setOpen(false);
      onEnter();
    } else if (event.key === 'Escape' && floating && shown) {
      event.preventDefault();
      event.stopPropagation();
      setOpen(false);
      setChosen(first);
    }
  };

  return (
    <div className={floating ? 'combobox combobox-floating' : 'combobox'}>
      <input
        spellCheck={false}
        autoComplete="off"
        {...rest}
        ref={inputRef}
        role="combobox"
        aria-label={label}
        aria-expanded={shown}
        aria-controls={`${id}-list`}
        aria-activedescendant={shown && current >= 0 ? `${id}-${current}` : undefined}
        aria-autocomplete="list"
        value={value}
        onChange={(event) => change(event.target.value)}
        onFocus={() => setOpen(true)}
        onBlur={() => floating && setOpen(false)}
        onKeyDown={onKeyDown}
      />
      <ul id={`${id}-list`} className="options" role="listbox" aria-label="Suggestions" hidden={!shown}>
        {options.map((option, i) => (
          <li
            key={option.name}
            id={`${id}-${i}`}
            role="option"
            aria-selected={i === current}
            onPointerDown={(event) => event.preventDefault()} // the field keeps the focus
            onClick={() => pick(option)}
            onPointerMove={() => setChosen(i)}
          >
            {option.icon && <Icon name={option.icon} />}
            <span className="grow">{option.name}</span>
            {option.hint && <span className="small muted">{option.hint}</span>}
          </li>
        ))}
      </ul>
      {options.length === 0 && none && <p className="options-none muted">{none}</p>}
    </div>
  );
}
