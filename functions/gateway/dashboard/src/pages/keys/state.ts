import type { Schemas } from '../../api/client';

export type StoredKey = Schemas['StoredKey'];

/** stateOf returns whether a key is valid. */
export function stateOf(key: Pick<StoredKey, 'revokedAt' | 'expiresAt'>, now: Date): 'live' | 'revoked' | 'expired' {
  if (key.revokedAt !== null) {
    return 'revoked';
  }
  return key.expiresAt !== null && Date.parse(key.expiresAt) <= now.getTime() ? 'expired' : 'live';
}
