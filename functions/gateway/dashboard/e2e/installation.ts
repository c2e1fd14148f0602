import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { LONG_TYPE } from './seed';

const binary = resolve(import.meta.dirname, '../../../../bin/jobweaver');

export type Role = 'submit' | 'read' | 'operate' | 'admin';

/** Key is a new API key: `key` is the secret. */
export interface Key {
  keyId: string;
  key: string;
}

/** Installation is a `jobweaver dev` for the tests, with authentication. */
export class Installation {
  private constructor(
    readonly url: string,
    readonly admin: string,
    readonly dir: string,
    readonly broker: string,
    private process: ChildProcess,
    private readonly environment: Record<string, string>,
  ) {}

  static async start(environment: Record<string, string> = {}): Promise<Installation> {
    const dir = await mkdtemp(join(tmpdir(), 'jobweaver-dashboard-'));
    const [port, brokerPort] = await Promise.all([freePort(), freePort()]);
    const url = `http://127.0.0.1:${port}`;
    const broker = `127.0.0.1:${brokerPort}`;
    const started = run(dir, port, broker, environment);
    await ready(url, started);
    const admin = (await readFile(join(dir, 'admin.key'), 'utf8')).trim();
    const installation = new Installation(url, admin, dir, broker, started, environment);
    await until('the admin key is kept', async () => (await fetch(`${url}/api/me`, bearer(admin))).ok);
    return installation;
  }

  /** stop ends the installation; its data stays. */
  async stop(): Promise<void> {
    if (this.process.exitCode !== null || this.process.signalCode !== null) {
      return;
    }
    const ended = new Promise((resolved) => this.process.once('exit', resolved));
    this.process.kill('SIGTERM');
    await ended;
  }

  /** startAgain starts it at the same address, with its data. */
  async startAgain(): Promise<void> {
    this.process = run(this.dir, Number(new URL(this.url).port), this.broker, this.environment);
    await ready(this.url, this.process);
  }

  async remove(): Promise<void> {
    await this.stop();
    await rm(this.dir, { recursive: true, force: true });
  }

  /** call sends a request, as an admin of the installation unless a key is given; it throws an error with the body. */
  async call<T = unknown>(method: string, path: string, body?: unknown, key = this.admin): Promise<T> {
    return call<T>(this.url, method, path, body, key);
  }

  key(ownerId: string, roles: Role[]): Promise<Key> {
    return this.call<Key>('POST', '/api/keys', { name: `${ownerId} ${roles.join(' ')}`, ownerId, roles });
  }
}

export async function call<T>(url: string, method: string, path: string, body: unknown, key: string): Promise<T> {
  const request: RequestInit = { method, headers: { ...bearer(key).headers, 'Content-Type': 'application/json' } };
  if (body !== undefined) {
    request.body = JSON.stringify(body);
  }
  const response = await fetch(url + path, request);
  const text = await response.text();
  if (!response.ok) {
    throw new Error(`${method} ${path}: ${response.status} ${text}`);
  }
  return (text === '' ? undefined : JSON.parse(text)) as T;
}

function bearer(key: string) {
  return { headers: { Authorization: `Bearer ${key}` } };
}

function run(dir: string, port: number, broker: string, environment: Record<string, string>): ChildProcess {
  const arguments_ = ['dev', '--dir', dir, '--port', String(port), '--kafka-port', broker.split(':')[1] ?? '', '--mail-port', '0', '--mail-page-port', '0'];
  const inherited = { ...process.env };
  for (const name of ['DATABASE_URL', 'KAFKA_BROKERS', 'QUEUES', 'JOB_TYPES']) {
    delete inherited[name]; // of the machine that runs the tests
  }
  return spawn(binary, arguments_, {
    env: { ...inherited, AUTH: 'on', JOB_TYPES: `INVOICE,SYNC_CRM,${LONG_TYPE}`, ...environment },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}

async function ready(url: string, started: ChildProcess): Promise<void> {
  await until('jobweaver dev is ready', async () => {
    if (started.exitCode !== null) {
      throw new Error(`jobweaver dev has ended with ${started.exitCode}`);
    }
    return fetch(`${url}/health/readiness`).then((response) => response.ok, () => false);
  });
}

/** until waits for a condition, for a minute at most. */
export async function until(what: string, condition: () => Promise<boolean>): Promise<void> {
  const end = Date.now() + 60_000;
  while (!(await condition())) {
    if (Date.now() > end) {
      throw new Error(`waited a minute: ${what}`);
    }
    await new Promise((resolved) => setTimeout(resolved, 50));
  }
}

function freePort(): Promise<number> {
  return new Promise((resolved, failed) => {
    const server = createServer();
    server.once('error', failed);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolved(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}
