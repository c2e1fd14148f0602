import type { Schemas } from './client';

export type Oidc = Schemas['OidcLogin'];

/** callbackPath is the path to which the issuer sends the browser back; the client is registered with it. */
export const callbackPath = '/login';

const NAME = 'jobweaver.login';

/** Begun is the state that this tab needs when the issuer sends it back. */
interface Begun {
  state: string;
  verifier: string;
  nonce: string; // in the ID token: another login's token is refused
  back: string; // the requested page
}

/** begin goes to the issuer, by the code flow with PKCE (RFC 7636). With anew, the issuer asks for the password again. */
export async function begin(oidc: Oidc, anew = false): Promise<void> {
  const begun: Begun = { state: random(), verifier: random(), nonce: random(), back: location.pathname + location.search };
  sessionStorage.setItem(NAME, JSON.stringify(begun));
  const to = new URL(oidc.authorizationEndpoint);
  const asked = {
    response_type: 'code',
    client_id: oidc.clientId,
    redirect_uri: location.origin + callbackPath,
    scope: oidc.scopes.join(' '),
    state: begun.state,
    nonce: begun.nonce,
    ...(anew && { prompt: 'login' }),
    code_challenge: await challenge(begun.verifier),
    code_challenge_method: 'S256',
  };
  Object.entries(asked).forEach(([name, value]) => to.searchParams.set(name, value));
  location.assign(to);
}

/** finish gets the token for the code that the issuer has put into the address, and the page to go back to. */
export async function finish(oidc: Oidc, search: string): Promise<{ token: string; back: string }> {
  const answer = new URLSearchParams(search);
  const begun = take();
  const refused = answer.get('error');
  if (refused !== null) {
    throw new Error(`The issuer answered ${refused}: ${answer.get('error_description') ?? 'it gives no reason'}`);
  }
  if (begun === null || answer.get('state') !== begun.state) {
    throw new Error('This tab has not asked the issuer for this login.');
  }
  if (answer.has('iss') && answer.get('iss') !== oidc.issuer) {
    throw new Error('The answer is another issuer’s.'); // RFC 9207
  }
  const response = await fetch(oidc.tokenEndpoint, {
    method: 'POST',
    headers: { Accept: 'application/json' },
    credentials: 'omit',
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      code: answer.get('code') ?? '',
      redirect_uri: location.origin + callbackPath,
      client_id: oidc.clientId,
      code_verifier: begun.verifier,
    }),
  });
  const tokens = (await response.json().catch(() => ({}))) as Record<string, unknown>;
  const token = tokens[oidc.token];
  if (!response.ok || typeof token !== 'string') {
    throw new Error(`The issuer gave no token: ${String(tokens['error_description'] ?? tokens['error'] ?? response.status)}`);
  }
  if (oidc.token === 'id_token' && nonceOf(token) !== begun.nonce) {
    throw new Error('The token is of another login.');
  }
  return { token, back: begun.back };
}

/** nonceOf returns the nonce of an ID token, whose signature the gateway verifies. */
export function nonceOf(token: string): unknown {
  try {
    const claims: unknown = JSON.parse(atob((token.split('.')[1] ?? '').replaceAll('-', '+').replaceAll('_', '/')));
    return (claims as { nonce?: unknown }).nonce;
  } catch {
    return undefined;
  }
}

/** take returns the stored state of begin and deletes it, so that a login is finished once. */
function take(): Begun | null {
  const text = sessionStorage.getItem(NAME);
  sessionStorage.removeItem(NAME);
  return text === null ? null : (JSON.parse(text) as Begun);
}

/** challenge returns the base64url of a verifier's SHA-256. */
export async function challenge(verifier: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier));
  return base64url(new Uint8Array(digest));
}

function random(): string {
  return base64url(crypto.getRandomValues(new Uint8Array(32)));
}

function base64url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes)).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}
