import { expect, it } from 'vitest';
import { parseSearch, paths, stringifySearch } from './paths';

it('repeats the name of a list in the address', () => {
  expect(paths.jobs({ status: ['FAILED', 'RETRYING'], type: 'EMAIL' })).toBe('/jobs?status=FAILED&status=RETRYING&type=EMAIL');
});
it('leaves out what is empty', () => {
  expect(stringifySearch({ a: '', b: undefined, c: [], d: null })).toBe('');
});
it('reads what it wrote', () => {
  const search = { status: ['FAILED', 'RETRYING'], tag: 'a&b=c d' };
  expect(parseSearch(stringifySearch(search))).toEqual(search);
});
it('takes numbers as text, as the API does', () => {
  expect(parseSearch('?orderingKey=17')).toEqual({ orderingKey: '17' });
});
