/** claimsOf returns the claims of a JSON Web Token, whose signature the gateway verifies; of any other text, none. */
export function claimsOf(token: string): Record<string, unknown> {
  try {
    const claims: unknown = JSON.parse(atob((token.split('.')[1] ?? '').replaceAll('-', '+').replaceAll('_', '/')));
    return typeof claims === 'object' && claims !== null ? (claims as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** userOf returns who logs in with an API key or a token: two tokens of one user give the same text. */
export function userOf(key: string): string {
  const { iss, sub } = claimsOf(key);
  return typeof sub === 'string' ? `${String(iss)} ${sub}` : key;
}
