import { useEffect, useId, useRef, useState, type ReactNode } from 'react';
import { Button } from './Button';
import type { IconName } from './Icon';
import './Menu.css';

interface Props {
  label: ReactNode;
  icon?: IconName;
  small?: boolean;
  align?: 'start' | 'end';
  children: (close: () => void) => ReactNode;
}

/** Menu is a button that opens a panel below it. Escape, a click elsewhere, and focus that leaves it close it. */
export function Menu({ label, icon, small = true, align = 'start', children }: Props) {
  const [open, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const id = useId();

  useEffect(() => {
    if (!open) {
      return;
    }
    const closeOutside = (event: Event) => {
      if (event.target instanceof Node && !root.current?.contains(event.target)) {
        setOpen(false);
      }
    };
    document.addEventListener('pointerdown', closeOutside);
    document.addEventListener('focusin', closeOutside);
    return () => {
      document.removeEventListener('pointerdown', closeOutside);
      document.removeEventListener('focusin', closeOutside);
    };
  }, [open]);

  return (
    <div
      ref={root}
      className="menu"
      onKeyDown={(event) => {
        if (event.key === 'Escape' && open) {
          event.stopPropagation();
          setOpen(false);
          button.current?.focus();
        }
      }}
    >
      <Button ref={button} small={small} {...(icon ? { icon } : {})} aria-expanded={open} aria-controls={id} onClick={() => setOpen(!open)}>
        {label}
      </Button>
      {open && (
        <div id={id} className={`menu-panel menu-${align}`}>
          {children(() => setOpen(false))}
        </div>
      )}
    </div>
  );
}
