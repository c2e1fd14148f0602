import type { Schemas } from '../../api/client';

export type StoredKey = Schemas['StoredKey'];

/** stateOf tells whether a key lets anybody in. */
export function stateOf(key: Pick<StoredKey, 'revokedAt' | 'expiresAt'>, now: Date): 'live' | 'revoked' | 'expired' {
  if (key.revokedAt !== null) {
    return 'revoked';
  }
  return key.expiresAt !== null && Date.parse(key.expiresAt) <= now.getTime() ? 'expired' : 'live';
}
