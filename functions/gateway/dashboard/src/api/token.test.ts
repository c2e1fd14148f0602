import { expect, it } from 'vitest';
import { claimsOf, userOf } from './token';

const token = (claims: object) => `e30.${btoa(JSON.stringify(claims)).replaceAll('=', '')}.x`;

it('reads the claims of a token, and none of anything else', () => {
  expect(claimsOf(token({ nonce: 'n-1' }))).toEqual({ nonce: 'n-1' });
  for (const text of ['', 'opaque', 'a.b.c', 'e30.MQ.x', `e30.${btoa('null')}.x`]) {
    expect(claimsOf(text)).toEqual({});
  }
});

it('knows a user by the subject of a token, and a key by itself', () => {
  expect(userOf(token({ iss: 'https://a', sub: 'ada', nonce: '1' }))).toBe(userOf(token({ iss: 'https://a', sub: 'ada', nonce: '2' })));
  expect(userOf(token({ iss: 'https://a', sub: 'ada' }))).not.toBe(userOf(token({ iss: 'https://b', sub: 'ada' })));
  expect(userOf('jw_1')).not.toBe(userOf('jw_2'));
});
