import { useState, type ReactNode } from 'react';
import { Icon } from './Icon';
import './Fold.css';

interface Props {
  title: ReactNode;
  note?: ReactNode;
  children: () => ReactNode;
}

/** Fold renders its content only when the user opens it. */
export function Fold({ title, note, children }: Props) {
  const [open, setOpen] = useState(false);
  return (
    <details className="fold" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <Icon name="right" size={14} />
        <span className="fold-title">{title}</span>
        {note && <span className="muted small">{note}</span>}
      </summary>
      {open && <div className="fold-body">{children()}</div>}
    </details>
  );
}
