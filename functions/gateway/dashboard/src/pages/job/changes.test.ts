import { expect, it } from 'vitest';
import { parseChanges } from './changes';

it('takes an object, or nothing', () => {
  expect(parseChanges('{"priority": 5, "tags": null}')).toEqual({ ok: true, value: { priority: 5, tags: null } });
  expect(parseChanges(' ')).toEqual({ ok: true, value: {} });
});
it('shows what is wrong with anything else', () => {
  for (const text of ['[1]', 'null', '5', '"x"']) {
    expect(parseChanges(text)).toMatchObject({ ok: false, problem: expect.stringContaining('object') as string });
  }
  expect(parseChanges('{priority: 5}')).toMatchObject({ ok: false, problem: expect.stringContaining('no JSON') as string });
});
