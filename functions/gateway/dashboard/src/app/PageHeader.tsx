import { useEffect, type ReactNode } from 'react';

interface Props {
  title: string;
  lead?: ReactNode;
  children?: ReactNode;
}

/** PageHeader is the heading of a page, and the title of its tab; children are the actions of the page. */
export function PageHeader({ title, lead, children }: Props) {
  useEffect(() => {
    document.title = `${title} · JobWeaver`;
  }, [title]);

  return (
    <header className="page-header">
      <div className="grow">
        <h1>{title}</h1>
        {lead && <p className="muted">{lead}</p>}
      </div>
      {children && <div className="row-wrap">{children}</div>}
    </header>
  );
}
