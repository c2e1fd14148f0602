import { createBrowserHistory, createRootRoute, createRoute, createRouter } from '@tanstack/react-router';
import { lazy, Suspense } from 'react';
import { base } from '../api/base';
import { session } from '../api/session';
import { Forbidden } from './Forbidden';
import { Layout } from './Layout';
import { loading } from './loading';
import { NotFound } from './NotFound';
import { Opening, PageBroke } from './Opening';
import { pages, type Page } from './pages';
import { parseSearch, stringifySearch, withOwner, withoutOwner } from './paths';

const root = createRootRoute({ component: Layout, notFoundComponent: NotFound });

function route(page: Page) {
  const Content = lazy(loading(page.load));
  return createRoute({
    getParentRoute: () => root,
    path: page.path,
    component: () => (
      <Forbidden needs={page.needs} title={page.title}>
        <Suspense fallback={<Opening title={page.title} />}>
          <Content />
        </Suspense>
      </Forbidden>
    ),
    errorComponent: ({ error, reset }) => <PageBroke title={page.title} error={error} onRetry={reset} />,
  });
}

/**
 * history has the addresses of pages without base, and without the owner for which the user acts: the router and `paths` know
 * neither. Each address that a user sees has both, so a link shows the same to another user, and going back the former owner.
 */
const history = createBrowserHistory({
  createHref: (path) => base + withOwner(path, session.owner()),
  parseLocation: () => {
    const { hash } = location;
    const { owner, search } = withoutOwner(location.search);
    session.actFor(owner);
    const pathname = location.pathname.slice(base.length) || '/';
    return { href: pathname + search + hash, pathname, search, hash, state: window.history.state ?? { __TSR_index: 0 } };
  },
});

export const router = createRouter({
  history,
  routeTree: root.addChildren(pages.map(route)),
  parseSearch,
  stringifySearch,
  defaultPreload: false,
});

/** actFor shows the same page with what an owner has; null: with what the user's key reaches by itself. */
export function actFor(owner: string | null) {
  session.actFor(owner);
  history.push(history.location.href);
}
