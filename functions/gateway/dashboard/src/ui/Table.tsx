import type { ReactNode } from 'react';
import './Table.css';

interface Props {
  caption: string;
  cards?: boolean; // on a phone, each row becomes a card: of cells with data-label, that is shown
  children: ReactNode;
}

/** Table scrolls sideways if it is too wide; caption names it for screen readers. */
export function Table({ caption, cards = false, children }: Props) {
  return (
    <div className="table-scroll" role="region" aria-label={caption} tabIndex={0}>
      <table className={cards ? 'table table-cards' : 'table'}>
        <caption className="visually-hidden">{caption}</caption>
        {children}
      </table>
    </div>
  );
}
