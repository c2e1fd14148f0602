import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AdapterFactory, type Configuration, type JWK, Provider } from 'oidc-provider';
// @ts-expect-error: it has no types
import { createMemoryAdapter } from 'oidc-provider/lib/adapters/memory_adapter.js';

const CLIENT = 'dashboard';
const HOUR_S = 3600;

/** BRIEF is a user whose tokens are good for seconds. */
export const BRIEF = 'brief';
export const BRIEF_S = 12;

/**
 * Issuer is an OpenID Provider with two public clients: the dashboard, and another one whose tokens the gateway must refuse. Each
 * name may log in with the password "secret".
 */
export class Issuer {
  readonly environment: Record<string, string>;
  private readonly issued = (createMemoryAdapter as () => AdapterFactory)();
  private provider: Provider;

  private constructor(
    private readonly server: Server,
    readonly url: string,
  ) {
    this.environment = { OIDC_ISSUER: url, OIDC_AUDIENCE: CLIENT, OIDC_CLIENT_ID: CLIENT };
    this.provider = this.make();
    server.on('request', (request, response) => void this.answer(request, response));
  }

  static async start(): Promise<Issuer> {
    const server = createServer();
    await new Promise<void>((resolved) => server.listen(0, '127.0.0.1', resolved));
    const address = server.address();
    return new Issuer(server, `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`);
  }

  stop(): void {
    this.server.close();
    this.server.closeAllConnections();
  }

  /** make makes the provider with a new signing key. It knows what the one before it has issued. */
  private make(): Provider {
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const key = { ...privateKey.export({ format: 'jwk' }), kid: randomUUID(), alg: 'RS256', use: 'sig' } as JWK;
    return new Provider(this.url, { ...configuration(key), adapter: this.issued });
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url ?? '/', this.url);
    if (pathname === '/rotate') {
      this.provider = this.make();
      response.end();
    } else if (pathname.startsWith('/interaction/')) {
      await this.logIn(request, response);
    } else {
      this.provider.callback()(request, response);
    }
  }

  private async logIn(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== 'POST') {
      response.setHeader('Content-Type', 'text/html; charset=utf-8').end(FORM);
      return;
    }
    const form = new URLSearchParams(await text(request));
    const accountId = form.get('name') ?? '';
    const result = form.get('password') === 'secret' ? { login: { accountId }, consent: {} } : { error: 'access_denied', error_description: 'wrong password' };
    await this.provider.interactionFinished(request, response, result);
  }
}

const FORM = `<!doctype html><html lang="en"><title>Issuer</title><link rel="icon" href="data:,"><h1>Issuer</h1><form method="post">
<label>Name <input name="name"></label> <label>Password <input name="password" type="password"></label> <button>Continue</button></form>`;

function configuration(key: JWK): Configuration {
  const client = { token_endpoint_auth_method: 'none', grant_types: ['authorization_code', 'refresh_token'], application_type: 'native' } as const;
  return {
    jwks: { keys: [key] },
    clients: [ // the ports of a native client's addresses do not count
      { ...client, client_id: CLIENT, redirect_uris: ['http://127.0.0.1/login'] },
      { ...client, client_id: 'another', redirect_uris: ['http://127.0.0.1/another'] },
    ],
    pkce: { required: () => true },
    clientBasedCORS: () => true,
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_, { uid }) => `/interaction/${uid}` },
    cookies: { keys: ['of a test'] },
    conformIdTokenClaims: false,
    claims: { openid: ['sub', 'owner', 'roles'] },
    findAccount: (_, sub) => ({ accountId: sub, claims: () => ({ sub, owner: 'acme', roles: ['read'] }) }),
    issueRefreshToken: (_, client) => Promise.resolve(client.grantTypeAllowed('refresh_token')), // as Keycloak does
    rotateRefreshToken: true,
    ttl: {
      IdToken: (_, token) => (token.available?.['sub'] === BRIEF ? BRIEF_S : HOUR_S),
      AccessToken: HOUR_S, AuthorizationCode: 60, Grant: HOUR_S, Interaction: HOUR_S, RefreshToken: HOUR_S, Session: HOUR_S,
    },
    async loadExistingGrant({ oidc }) { // without a question for consent
      const grant = new oidc.provider.Grant({ accountId: oidc.session?.accountId ?? '', clientId: oidc.client?.clientId ?? '' });
      grant.addOIDCScope('openid');
      await grant.save();
      return grant;
    },
  };
}

async function text(request: IncomingMessage): Promise<string> {
  let body = '';
  for await (const part of request) {
    body += String(part);
  }
  return body;
}
