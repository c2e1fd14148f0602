import { base } from './base';
import type { Schemas } from './client';
import { claimsOf, userOf } from './token';

export type Oidc = Schemas['OidcLogin'];

/** callbackPath is the path to which the issuer sends the browser back; the client is registered with it. */
export const callbackPath = `${base}/login`;

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

/** finish gets the tokens for the code that the issuer has put into the address, and the page to go back to. */
export async function finish(oidc: Oidc, search: string): Promise<{ tokens: Tokens; back: string }> {
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
  const client = { endpoint: oidc.tokenEndpoint, clientId: oidc.clientId, kind: oidc.token };
  const tokens = await request(client, {
    grant_type: 'authorization_code',
    code: answer.get('code') ?? '',
    redirect_uri: location.origin + callbackPath,
    code_verifier: begun.verifier,
  });
  if (oidc.token === 'id_token' && claimsOf(tokens.token)['nonce'] !== begun.nonce) {
    throw new Error('The token is of another login.');
  }
  return { tokens, back: begun.back };
}

/** renew gets the next token. It throws Refused if the user has to log in again, and another error if the issuer is away. */
export async function renew(renewal: Renewal): Promise<Tokens> {
  const tokens = await request(renewal, { grant_type: 'refresh_token', refresh_token: renewal.refreshToken });
  if (renewal.kind === 'id_token' && userOf(tokens.token) !== renewal.user) {
    throw new Refused('The token is of another user.');
  }
  return tokens;
}

/** Refused is a refusal of the issuer. */
export class Refused extends Error {}

/** Renewal is what a tab needs to get its next token without the user. */
export interface Renewal extends Client {
  refreshToken: string;
  user: string;
}

/** Client is the dashboard at the issuer. */
interface Client {
  endpoint: string;
  clientId: string;
  kind: Oidc['token'];
}

/** Tokens is what the issuer gives for a code or a refresh token. */
export interface Tokens {
  token: string;
  lifeMs: number | null; // null: not known
  renewal: Renewal | null; // null: the issuer gives no refresh token
}

async function request(client: Client, body: Record<string, string>): Promise<Tokens> {
  const response = await fetch(client.endpoint, {
    method: 'POST',
    headers: { Accept: 'application/json' },
    credentials: 'omit',
    body: new URLSearchParams({ ...body, client_id: client.clientId }),
  });
  if (response.status >= 500) {
    throw new Error(`The issuer answered ${response.status}.`);
  }
  const tokens = (await response.json().catch(() => ({}))) as Record<string, unknown>;
  const token = tokens[client.kind];
  if (!response.ok || typeof token !== 'string') {
    throw new Refused(`The issuer gave no token: ${String(tokens['error_description'] ?? tokens['error'] ?? response.status)}`);
  }
  const { endpoint, clientId, kind } = client;
  const refreshToken = tokens['refresh_token'] ?? body['refresh_token']; // the issuer may let the old one go on
  return {
    token,
    lifeMs: life(kind === 'id_token' ? claimsOf(token) : { exp: tokens['expires_in'], iat: 0 }),
    renewal: typeof refreshToken === 'string' ? { endpoint, clientId, kind, refreshToken, user: userOf(token) } : null,
  };
}

/** life returns how long a token is good, whatever the clock of this machine shows. */
function life({ exp, iat }: Record<string, unknown>): number | null {
  return typeof exp === 'number' && typeof iat === 'number' ? (exp - iat) * 1000 : null;
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
