import { createBrowserHistory, createRootRoute, createRoute, createRouter } from '@tanstack/react-router';
import { lazy, Suspense } from 'react';
import { base } from '../api/base';
import { Forbidden } from './Forbidden';
import { Layout } from './Layout';
import { loading } from './loading';
import { NotFound } from './NotFound';
import { Opening, PageBroke } from './Opening';
import { pages, type Page } from './pages';
import { parseSearch, stringifySearch } from './paths';

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

/** history has the addresses of pages without base: the router and `paths` do not know it. */
const history = createBrowserHistory({
  createHref: (path) => base + path,
  parseLocation: () => {
    const { search, hash } = location;
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
