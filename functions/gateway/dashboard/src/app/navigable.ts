import type { Need } from '../api/me';
import { pages, type Page } from './pages';

export type NavigablePage = Page & { nav: NonNullable<Page['nav']> };

/** navigable returns the pages in the navigation of a user with these rights. */
export function navigable(may: (need: Need) => boolean): NavigablePage[] {
  return pages.filter((page): page is NavigablePage => page.nav !== undefined && may(page.needs));
}
