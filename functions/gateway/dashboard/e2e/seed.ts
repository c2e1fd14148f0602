import { call, type Key } from './installation';

/** Seeded are the ids of the data that an installation in use has, and the key of their owner. */
export interface Seeded {
  key: string;
  failedJob: string; // after two attempts by two pull workers
  arabicJob: string;
  wideFlow: string; // of which two jobs of 60 failed
  eachFlow: string; // with a fan-out
  batch: string;
  operation: string;
}

export const LONG_TYPE = 'RECALCULATE_THE_BALANCES_OF_ALL_CUSTOMERS_IN_EUR_USD_AND_JPY_X';

const steps = (...all: object[]) => ({ jobType: 'SIMULATION', payload: { steps: all } });
const log = steps({ type: 'LOG', message: 'counted 17 items' });
const declined = steps({ type: 'LOG', message: 'asks the bank' }, { type: 'FAIL', errorCode: 'PAYMENT.CARD_DECLINED', retryable: false });
const later = { delayMs: 3_600_000 };

const jobs: object[] = [
  ...['CRM.TIMEOUT', 'CRM.REFUSED', 'SMTP.MAILBOX_FULL', `DEMO.${'LONG_'.repeat(11)}END`].flatMap((errorCode, i) =>
    Array.from({ length: 4 - i }, (_, n) => ({
      ...steps({ type: 'FAIL', errorCode, retryable: false }),
      tags: [`order:ORD-${10_017 + n}`, 'nightly'],
    })),
  ),
  ...Array.from({ length: 12 }, (_, n) => ({ ...log, tags: [`order:ORD-${20_000 + n}`], priority: n % 3 })),
  { ...steps({ type: 'SLEEP', durationMs: 600_000 }), tags: ['long'] },
  { jobType: 'SYNC_CRM', payload: { contact: 'ACME <script>alert(1)</script>' }, tags: ['crm'] }, // no worker runs it
  { jobType: LONG_TYPE, payload: {}, ...later, tags: ['a-tag-of-sixty-letters-which-is-as-long-as-tags-of-it-may-be'] },
  { ...log, orderingKey: 'account-17', ...later },
  { ...log, orderingKey: 'account-17', ...later },
];

/** seed makes jobs of several owners, types and codes, flows, schedules in several zones, alerts, and limits. */
export async function seed(url: string, admin: string): Promise<Seeded> {
  const { key } = await call<Key>(url, 'POST', '/api/keys', { name: 'initech', ownerId: 'initech', roles: ['admin', 'work'] }, admin);
  const post = <T>(path: string, body: object, as = key) => call<T>(url, 'POST', path, body, as);
  const { results } = await post<{ results: { status: number }[] }>('/api/jobs/batch', { jobs });
  const refused = results.filter(({ status }) => status >= 400);
  if (refused.length > 0) {
    throw new Error(`seeded jobs are refused: ${JSON.stringify(refused)}`);
  }
  await post('/api/jobs/batch', { jobs: ['stark', 'wayne'].flatMap((ownerId) => [{ ...declined, ownerId }, { ...log, ownerId }]) }, admin);
  const arabic = await post<{ jobId: string }>('/api/jobs', {
    jobType: 'INVOICE', queue: 'pull', payload: { 'ملاحظة': 'هذا نص يُقرأ من اليمين إلى اليسار', größe: '日本語' }, ...later,
    tags: ['طلب:17', 'order:ORD-10017', 'nightly', 'eu-west-1', 'retry-by-hand', 'customer:Müller & Söhne'],
  });
  const [wideFlow, eachFlow, batch, failedJob, operation] = await Promise.all([
    wide(url, key), each(url, key), inBatch(url, key), attempts(url, key), operate(url, key),
  ]);
  await schedules(url, key);
  await alerts(url, key);
  for (const [subject, body] of [
    ['type/SYNC_CRM', { paused: true }],
    ['owner/stark', { maxRunning: 5 }],
    ['fairnessKey/initech', { weight: 3 }],
  ] as const) {
    await call(url, 'PUT', `/api/controls/${subject}`, body, admin);
  }
  return { key, failedJob, arabicJob: arabic.jobId, wideFlow, eachFlow, batch, operation };
}

async function wide(url: string, key: string): Promise<string> {
  const all: Record<string, object> = { 'list-the-orders-of-the-last-day-in-all-warehouses': log };
  const [first] = Object.keys(all);
  for (let i = 0; i < 60; i++) {
    all[`worker-number-${i}`] = { ...(i === 2 || i === 10 ? declined : log), after: [first] };
  }
  all['release'] = { ...log, after: [{ name: 'worker-number-2', on: 'failed' }, first] };
  all['notify'] = { ...log, after: ['worker-number-2'] };
  all['archive'] = { ...log, after: ['notify', first] };
  const { flowId } = await call<{ flowId: string }>(url, 'POST', '/api/flows', { name: 'ship the orders of 2026-11-27', jobs: all }, key);
  await call(url, 'GET', `/api/flows/${flowId}?wait=30s`, undefined, key);
  return flowId;
}

async function each(url: string, key: string): Promise<string> {
  const { flowId } = await call<{ flowId: string }>(url, 'POST', '/api/flows', {
    name: 'invoices',
    jobs: {
      list: { jobType: 'INVOICE', queue: 'pull', payload: { list: true } },
      each: { ...log, after: ['list'], forEach: { $output: 'list' } },
      report: { ...log, after: [{ name: 'each', on: 'ended' }] },
    },
  }, key);
  return flowId;
}

async function inBatch(url: string, key: string): Promise<string> {
  const { batchId } = await call<{ batchId: string }>(url, 'POST', '/api/batches', { name: 'import of contacts', closed: true, jobs: [log, declined, log] }, key);
  return batchId;
}

/** attempts makes a job that two pull workers fail, and completes the list of the flow with a fan-out. */
async function attempts(url: string, key: string): Promise<string> {
  const { jobId } = await call<{ jobId: string }>(url, 'POST', '/api/jobs', {
    jobType: 'INVOICE', queue: 'pull', payload: { order: 'ORD-50003' }, maxRetryCount: 1, tags: ['order:ORD-50003'],
  }, key);
  const ends = [
    { errorCode: 'CRM.TIMEOUT', message: 'timeout after 30 s calling https://crm.example.org/v2/contacts' },
    { errorCode: 'CRM.REFUSED', message: '403 Forbidden from https://crm.example.org/v2/contacts: token expired' },
  ];
  for (let left = 3; left > 0; left--) {
    const worker = ['', 'build-agent-ß-02', 'gpu-1', 'eu-west-1a/resizer-7f9c6d5b4-x2x9q'][left];
    const claimed = await call<{ attempts: { token: string; jobId: string }[] }>(
      url, 'POST', '/api/workers/claim', { worker, types: ['INVOICE'], wait: '30s' }, key,
    );
    const [attempt] = claimed.attempts;
    const log = [{ level: 'info', text: 'POST /v2/contacts' }, { level: 'error', text: 'refresh token: 401' }];
    await call(url, 'POST', '/api/workers/heartbeat', { worker, attempts: [{ token: attempt?.token, log }] }, key);
    const result = attempt?.jobId === jobId
      ? { status: 'FAILED', retryAfterMs: 1, ...ends.shift() }
      : { status: 'COMPLETED', output: Array.from({ length: 30 }, (_, i) => i) };
    await call(url, 'POST', '/api/workers/settle', { worker, results: [{ token: attempt?.token, ...result }] }, key);
  }
  return jobId;
}

async function operate(url: string, key: string): Promise<string> {
  const { operationId } = await call<{ operationId: string }>(url, 'POST', '/api/operations', { command: 'reschedule', delayMs: 7_200_000, filter: { orderingKey: 'account-17' } }, key);
  return operationId;
}

/** alerts makes alerts in several states; the failed jobs of the others make some of them fire. */
async function alerts(url: string, key: string): Promise<void> {
  const all = [
    { name: 'crm-down', errorCode: 'CRM.TIMEOUT', windowMinutes: 60, to: { email: ['ada@example.org'] } },
    { name: 'many-failures-of-the-nightly-batch-of-all-tenants-in-the-queue-default', failures: 1000, percent: 20, queue: 'default', to: { email: ['ada@example.org', 'on-call-of-the-platform@example.org'] } },
    { name: 'invoices', jobType: LONG_TYPE, paused: true, to: { slack: 'https://hooks.slack.com/services/T0/B0/secret' } },
  ];
  await Promise.all(all.map((alert) => call(url, 'POST', '/api/alerts', alert, key)));
  await call(url, 'POST', '/api/alerts/crm-down/test', undefined, key);
}

async function schedules(url: string, key: string): Promise<void> {
  const all = [
    ['nightly-revenue', '30 2 * * *', 'Europe/Berlin'], ['heartbeat', '*/10 * * * * *', 'UTC'], ['ny-close', '0 16 * * MON-FRI', 'America/New_York'],
    ['a-schedule-with-a-name-that-is-as-long-as-the-names-of-schedules-get', '@every 90s', 'Asia/Kolkata'],
  ] as const;
  await Promise.all(all.map(([name, cron, timeZone]) => call(url, 'POST', '/api/schedules', { name, cron, timeZone, job: log, paused: name === 'heartbeat' }, key)));
}
