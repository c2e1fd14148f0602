import { createHash, generateKeyPairSync, type KeyObject, randomUUID, sign } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';

const CLIENT = 'dashboard';

/** Issuer is an OpenID Connect issuer with one user who is logged in: only the code flow with PKCE. */
export class Issuer {
  readonly environment: Record<string, string>;
  private readonly codes = new Map<string, { challenge: string; redirect: string; nonce: string }>();
  private readonly keys = generateKeyPairSync('rsa', { modulusLength: 2048 });

  private constructor(
    private readonly server: Server,
    readonly url: string,
  ) {
    this.environment = { OIDC_ISSUER: url, OIDC_AUDIENCE: CLIENT, OIDC_CLIENT_ID: CLIENT };
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

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', this.url);
    response.setHeader('Access-Control-Allow-Origin', '*');
    switch (url.pathname) {
      case '/.well-known/openid-configuration':
        return json(response, 200, {
          issuer: this.url,
          authorization_endpoint: `${this.url}/authorize`,
          token_endpoint: `${this.url}/token`,
          jwks_uri: `${this.url}/keys`,
        });
      case '/keys':
        return json(response, 200, { keys: [{ ...this.keys.publicKey.export({ format: 'jwk' }), kid: 'one', alg: 'RS256', use: 'sig' }] });
      case '/authorize':
        return this.authorize(url.searchParams, response);
      case '/token':
        return this.token(new URLSearchParams(await text(request)), response);
      default:
        return json(response, 404, {});
    }
  }

  private authorize(asked: URLSearchParams, response: ServerResponse): void {
    const redirect = new URL(asked.get('redirect_uri') ?? '');
    const right =
      asked.get('response_type') === 'code' && asked.get('client_id') === CLIENT && redirect.pathname === '/login' &&
      asked.get('code_challenge_method') === 'S256' && asked.get('scope') === 'openid';
    if (!right) {
      return json(response, 400, { error: 'invalid_request' });
    }
    const code = randomUUID();
    this.codes.set(code, { challenge: asked.get('code_challenge') ?? '', redirect: redirect.href, nonce: asked.get('nonce') ?? '' });
    redirect.searchParams.set('code', code);
    redirect.searchParams.set('state', asked.get('state') ?? '');
    redirect.searchParams.set('iss', this.url);
    response.writeHead(302, { Location: redirect.href }).end();
  }

  private token(asked: URLSearchParams, response: ServerResponse): void {
    const begun = this.codes.get(asked.get('code') ?? '');
    this.codes.delete(asked.get('code') ?? '');
    const challenge = createHash('sha256').update(asked.get('code_verifier') ?? '').digest('base64url');
    if (begun?.challenge !== challenge || begun.redirect !== asked.get('redirect_uri') || asked.get('client_id') !== CLIENT) {
      return json(response, 400, { error: 'invalid_grant', error_description: 'the code or its verifier is wrong' });
    }
    const now = Math.floor(Date.now() / 1000);
    const claims = { iss: this.url, sub: 'ada', aud: CLIENT, iat: now, exp: now + 600, owner: 'acme', roles: ['read'], nonce: begun.nonce };
    json(response, 200, { token_type: 'Bearer', access_token: 'opaque', id_token: jwt(claims, this.keys.privateKey) });
  }
}

function jwt(claims: object, key: KeyObject): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const content = `${part({ alg: 'RS256', kid: 'one' })}.${part(claims)}`;
  return `${content}.${sign('sha256', Buffer.from(content), key).toString('base64url')}`;
}

function json(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
}

async function text(request: IncomingMessage): Promise<string> {
  let body = '';
  for await (const part of request) {
    body += String(part);
  }
  return body;
}
