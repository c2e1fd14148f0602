import { expect, it } from 'vitest';
import { parseSearch } from '../../app/paths';
import { readFilters } from './filters';
import { BUILTIN, isViews, save, searchOf } from './views';

it('the built-in views mean what their addresses say', () => {
  for (const view of BUILTIN) {
    expect(searchOf(readFilters(parseSearch(view.search)))).toBe(view.search);
  }
});
it('a view replaces the one of its name', () => {
  const filters = readFilters({ tag: 'billing' });
  const once = save([{ name: 'B', search: 'tag=x' }], 'A', filters);
  expect(once.map((view) => view.name)).toEqual(['A', 'B']);
  expect(save(once, 'B', filters)).toEqual([
    { name: 'A', search: 'tag=billing' },
    { name: 'B', search: 'tag=billing' },
  ]);
});
it('refuses what another version may have stored', () => {
  expect(isViews([{ name: 'A', search: '' }])).toBe(true);
  expect(isViews({ A: 'x' })).toBe(false);
  expect(isViews(['A'])).toBe(false);
});
