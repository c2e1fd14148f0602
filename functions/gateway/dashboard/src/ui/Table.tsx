import { useLayoutEffect, useRef, useState, type ReactNode } from 'react';
import './Table.css';

interface Props {
  caption: string;
  cards?: boolean; // on a phone, each row is a card; a cell shows its data-label there
  children: ReactNode;
}

/** Table names itself to screen readers by its caption. */
export function Table({ caption, cards = false, children }: Props) {
  return (
    <TableScroll label={caption}>
      <table className={cards ? 'table table-cards' : 'table'}>
        <caption className="visually-hidden">{caption}</caption>
        {children}
      </table>
    </TableScroll>
  );
}

/**
 * TableScroll scrolls a table sideways if it is too wide: the first column stays, a shadow shows that the table goes on, and
 * only then the keyboard reaches it.
 */
export function TableScroll({ label, children }: { label: string; children: ReactNode }) {
  const box = useRef<HTMLDivElement>(null);
  const [hidden, setHidden] = useState<'none' | 'left' | 'right'>('none'); // what of the table is out of view
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) {
      return;
    }
    const look = () => {
      const { scrollLeft, clientWidth, scrollWidth } = element;
      setHidden(scrollWidth <= clientWidth + 1 ? 'none' : scrollLeft + clientWidth < scrollWidth - 1 ? 'right' : 'left');
    };
    const observer = new ResizeObserver(look);
    observer.observe(element);
    if (element.firstElementChild) {
      observer.observe(element.firstElementChild);
    }
    element.addEventListener('scroll', look, { passive: true });
    look();
    return () => {
      observer.disconnect();
      element.removeEventListener('scroll', look);
    };
  }, []);
  return (
    <div ref={box} className={`table-scroll table-hides-${hidden}`} role="region" aria-label={label} {...(hidden !== 'none' && { tabIndex: 0 })}>
      {children}
    </div>
  );
}
