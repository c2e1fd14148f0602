import { Outlet, useRouter, useRouterState } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import { useMay } from '../api/me';
import { Toasts } from '../ui/Toasts';
import { useShortcuts } from '../ui/shortcuts';
import { CommandPalette } from './CommandPalette';
import { KeyboardHelp } from './KeyboardHelp';
import { Navigation } from './Navigation';
import { navigable } from './navigable';
import { TopBar } from './TopBar';
import './Layout.css';

type Open = 'palette' | 'help' | 'drawer' | null;

/** Layout has the parts that all pages share: the bar at the top, the navigation, and overlays. */
export function Layout() {
  const [open, setOpen] = useState<Open>(null);
  const main = useRef<HTMLElement>(null);
  const may = useMay();
  const router = useRouter();
  const pathname = useRouterState({ select: (state) => state.location.pathname });
  const shown = useRef(pathname);

  useEffect(() => {
    if (shown.current !== pathname) {
      shown.current = pathname;
      setOpen(null);
      main.current?.focus({ preventScroll: true });
      window.scrollTo(0, 0);
    }
  }, [pathname]);

  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === 'k') {
        event.preventDefault();
        setOpen('palette');
      }
    };
    document.addEventListener('keydown', onKeyDown);
    return () => document.removeEventListener('keydown', onKeyDown);
  }, []);

  useShortcuts([
    { keys: '?', does: 'Show these keys', run: () => setOpen('help') },
    { keys: '/', does: 'Search and go anywhere', run: () => setOpen('palette') },
    ...navigable(may).map((page) => ({
      keys: page.nav.keys,
      does: `Go to ${page.title}`,
      run: () => router.history.push(page.path),
    })),
  ]);

  return (
    <div className="layout">
      <a
        className="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          main.current?.focus();
        }}
      >
        Skip to content
      </a>
      <TopBar onMenu={() => setOpen('drawer')} onSearch={() => setOpen('palette')} onHelp={() => setOpen('help')} />
      <Navigation drawer={open === 'drawer'} onClose={() => setOpen(null)} />
      <main id="main" ref={main} className="main" tabIndex={-1} inert={open === 'drawer'}>
        <Outlet />
      </main>
      {open === 'palette' && <CommandPalette onClose={() => setOpen(null)} />}
      {open === 'help' && <KeyboardHelp onClose={() => setOpen(null)} />}
      <Toasts />
    </div>
  );
}
