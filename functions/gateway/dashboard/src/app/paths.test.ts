import { expect, it } from 'vitest';
import { parseSearch, paths, stringifySearch, withOwner, withoutOwner } from './paths';

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
it('has the owner beside the state of a page', () => {
  for (const owner of ['acme', 'Müller & Söhne?', null]) {
    for (const search of ['', '?status=FAILED&tag=a%26b', '?has=as&asas=1']) {
      const address = withOwner(`/jobs${search}`, owner);
      expect(withoutOwner(address.slice('/jobs'.length))).toEqual({ owner, search });
    }
  }
  expect(withoutOwner('?as=&q=1')).toEqual({ owner: null, search: '?q=1' });
});
