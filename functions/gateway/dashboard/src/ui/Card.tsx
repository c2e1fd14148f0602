import { useId, type ReactNode } from 'react';
import './Card.css';

interface Props {
  title?: ReactNode;
  aside?: ReactNode;
  children: ReactNode;
  flush?: boolean;
  className?: string;
}

/** Card is a titled part of a page. A flush one lets its content, such as a table, reach its edges. */
export function Card({ title, aside, children, flush = false, className }: Props) {
  const id = useId();
  return (
    <section className={`card ${flush ? 'card-flush' : ''} ${className ?? ''}`} aria-labelledby={title ? id : undefined}>
      {title && (
        <header className="card-head">
          <h2 id={id}>{title}</h2>
          {aside}
        </header>
      )}
      {children}
    </section>
  );
}
