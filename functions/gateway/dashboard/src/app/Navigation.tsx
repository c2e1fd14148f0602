import { useRouterState } from '@tanstack/react-router';
import { useEffect, useRef } from 'react';
import { useMay } from '../api/me';
import { IconButton } from '../ui/Button';
import { Icon } from '../ui/Icon';
import { Link } from './Link';
import { navigable } from './navigable';

interface Props {
  drawer: boolean; // on a narrow screen: shown over the page
  onClose: () => void;
}

export function Navigation({ drawer, onClose }: Props) {
  const may = useMay();
  const pathname = useRouterState({ select: (state) => state.location.pathname });
  const nav = useRef<HTMLElement>(null);
  const items = navigable(may);
  const groups = [...new Set(items.map((page) => page.nav.group))];

  useEffect(() => {
    if (drawer) {
      nav.current?.querySelector<HTMLElement>('button, a')?.focus();
    }
  }, [drawer]);

  return (
    <>
      {drawer && <div className="nav-shade" onClick={onClose} />}
      <nav
        ref={nav}
        className={drawer ? 'nav nav-open' : 'nav'}
        aria-label="Pages"
        onKeyDown={(event) => {
          if (event.key === 'Escape') {
            onClose();
          }
        }}
      >
        <IconButton icon="close" label="Close navigation" className="nav-close" onClick={onClose} />
        {groups.map((group) => (
          <section key={group} className="nav-group">
            <h2>{group}</h2>
            <ul>
              {items
                .filter((page) => page.nav.group === group)
                .map((page) => (
                  <li key={page.path}>
                    <Link
                      href={page.path}
                      className="nav-item"
                      aria-current={isCurrent(page.path, pathname) ? 'page' : undefined}
                      onClick={onClose}
                    >
                      <Icon name={page.nav.icon} />
                      {page.title}
                    </Link>
                  </li>
                ))}
            </ul>
          </section>
        ))}
      </nav>
    </>
  );
}

/** A job's page belongs to the list of jobs, so the list is current there, too. */
function isCurrent(path: string, pathname: string): boolean {
  return path === pathname || (path !== '/' && pathname.startsWith(`${path}/`));
}
