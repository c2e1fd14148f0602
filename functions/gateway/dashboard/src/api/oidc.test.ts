import { expect, it } from 'vitest';
import { challenge, nonceOf } from './oidc';

it('makes the challenge of RFC 7636, appendix B', async () => {
  expect(await challenge('dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk')).toBe('E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM');
});

it('reads the nonce of an ID token, and none of anything else', () => {
  expect(nonceOf(`e30.${btoa('{"nonce":"n-1"}').replaceAll('=', '')}.x`)).toBe('n-1');
  for (const text of ['', 'opaque', 'a.b.c', 'e30.e30.x']) {
    expect(nonceOf(text)).toBeUndefined();
  }
});
