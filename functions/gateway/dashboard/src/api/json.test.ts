import { LosslessNumber } from 'lossless-json';
import { expect, it } from 'vitest';
import { isObject, parse, stringify } from './json';

const text = '{"id":1970670598291982290,"price":1.10,"size":1E2,"zero":-0,"long":123456789012345678901234567890,"small":1e-7,"n":[7,0.5]}';

it('changes no number, nor what an object has', () => {
  expect(stringify(parse(text))).toBe(text);
  expect(parse('{"n":7,"d":0.5}')).toEqual({ n: 7, d: 0.5 });
  expect(stringify(parse('{"__proto__":{"a":1}}'))).toBe('{"__proto__":{"a":1}}');
  expect(stringify(parse(text), 2)).toContain('\n  "price": 1.10,');
  expect(stringify(undefined, 2)).toBe('null');
});
it('takes no number for an object', () => {
  expect([{}, new LosslessNumber('1.10'), [], null].map(isObject)).toEqual([true, false, false, false]);
});
