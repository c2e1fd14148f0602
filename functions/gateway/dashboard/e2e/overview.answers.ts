import type { components } from '../src/api/schema.gen';

type Schemas = components['schemas'];

/** overviewAnswers are the responses of an installation in a bad hour: most jobs run well, mails fail, and a queue is paused. */
export function overviewAnswers(now: string): Record<string, unknown> {
  const before = (seconds: number) => new Date(Date.parse(now) - 1000 * seconds).toISOString();
  const jobs = (change: Partial<Schemas['JobCounts']>): Schemas['JobCounts'] => ({
    SCHEDULED: 0, PENDING: 0, QUEUED: 0, RUNNING: 0, WAITING: 0, RETRYING: 0, COMPLETED: 0, FAILED: 0, CANCELLED: 0, ...change,
  });
  // A wave, and failures in its last quarter.
  const flows = (spans: number, seconds: number, size: number): Schemas['Flow'][] =>
    Array.from({ length: spans }, (_, i) => {
      const accepted = Math.round(size * (1 + 0.4 * Math.sin(i / 6)));
      const failed = i < spans * 0.75 ? Math.round(accepted * 0.005) : Math.round(accepted * 0.12 * (1 + Math.sin(i)));
      return { at: before((spans - i) * seconds), accepted, completed: accepted - failed - (i % 5), failed, cancelled: i % 5 };
    });
  const rates = { accepted: 22.4, completed: 20.9, failed: 1.6, cancelled: 0.05 };
  const percentiles = (count: number, p50Ms: number, p95Ms: number, p99Ms: number): Schemas['Percentiles'] => ({ count, p50Ms, p95Ms, p99Ms });
  const latency: Schemas['Latency'] = {
    acceptToStart: percentiles(6012, 4.1, 38, 412), run: percentiles(6301, 84, 1900, 30_000), acceptToEnd: percentiles(6301, 91, 2100, 34_500),
  };
  const failures: Schemas['Failures'] = {
    jobTypes: [{ jobType: 'EMAIL', failed: 1204, ended: 8311 }, { jobType: 'INVOICE', failed: 77, ended: 24_890 }, { jobType: 'REPORT', failed: 3, ended: 412 }],
    errorCodes: [{ errorCode: 'SMTP.TIMEOUT', failed: 1190 }, { errorCode: 'INVOICE.NO_ADDRESS', failed: 71 }, { errorCode: null, failed: 23 }],
  };
  const stats: Schemas['Stats'] = {
    at: now, asOf: before(4),
    jobs: jobs({ SCHEDULED: 812, PENDING: 4120, QUEUED: 12, RUNNING: 21, WAITING: 6, RETRYING: 318, COMPLETED: 1_482_911, FAILED: 1284, CANCELLED: 97 }),
    types: [{ jobType: 'EMAIL', jobs: jobs({ PENDING: 4012, RETRYING: 318, COMPLETED: 402_114, FAILED: 1204 }) }],
    queues: [
      { queue: 'default', jobs: jobs({ SCHEDULED: 812, QUEUED: 12, RUNNING: 21, WAITING: 6, COMPLETED: 1_080_797, FAILED: 80, CANCELLED: 97 }) },
      { queue: 'mail', jobs: jobs({ PENDING: 4120, RETRYING: 318, COMPLETED: 402_114, FAILED: 1204 }) },
    ],
    oldestWaiting: { jobId: '01936f3e-5f3e-7cc0-8000-000000000009', createdAt: before(2832), ageMs: 2_832_000 },
    throughput: {
      perSecond: { '1m': rates, '5m': rates, '1h': rates },
      minutes: flows(60, 60, 1300), hours: flows(24, 3600, 60_000), days: flows(30, 86_400, 1_400_000),
    },
    latency: { '5m': latency, '1h': latency, '24h': latency, '30d': latency },
    failures: { '1h': failures, '24h': failures, '30d': failures },
  };
  const worker = (workerId: string, busy: number): Schemas['Worker'] => ({
    workerId, version: '1.0.0', startedAt: before(1500), live: true, stopping: false, draining: false, drained: false, seenAt: before(0.4), queues: ['default', 'mail'], jobTypes: ['EMAIL', 'INVOICE'],
    partitions: {}, slots: 16, free: 16 - busy, busy, rate: 10.4, attempts: [],
  });
  const control = { maxRunning: null, startsPerSecond: null, weight: null, updatedAt: before(2900), updatedBy: 'key:k', version: 1, applied: true };
  const controls: Schemas['Control'][] = [
    { ...control, kind: 'queue', name: 'mail', paused: true },
    { ...control, kind: 'owner', name: 'globex', paused: false, maxRunning: 10, startsPerSecond: 2 },
  ];
  const share = (fairnessKey: string, weight: number, waiting: number, running: number): Schemas['Share'] => ({
    fairnessKey, weight, waiting, running, dueShare: weight / 8, runningShare: running / 33, paused: false, maxRunning: null, startsPerSecond: null,
  });
  const shares: Schemas['SharePage'] = {
    queue: 'default', at: now, complete: true, keys: 4, waiting: 4120, running: 33, nextCursor: null,
    shares: [
      share('globex', 1, 3987, 4), { ...share('acme', 6, 128, 27), maxRunning: 30 }, share('', 1, 4, 2),
      { ...share('initech', 1, 1, 0), dueShare: 0, paused: true },
    ],
  };
  const lag: Schemas['Lag'] = {
    at: now,
    topics: [
      { function: 'ingest', topic: 'job-created', records: 0, members: 2 },
      { function: 'notify', topic: 'job-status', records: 40_211, members: 0 },
      { function: 'outcome', topic: 'run-outcome', records: 14, members: 2 },
      { function: 'projection', topic: 'job-status', records: 122, members: 2 },
    ],
  };
  const group = (jobType: string, errorCode: string | null, jobs: number, message: string, perHour: number, dayBefore: number): Schemas['DeadGroup'] => ({
    jobType, errorCode, jobs, new: dayBefore === 0, firstFailedAt: before(dayBefore === 0 ? 5400 : 400_000), lastFailedAt: before(16), dayBefore,
    hours: Array.from({ length: 24 }, (_, i) => (dayBefore === 0 && i < 22 ? 0 : Math.round(perHour * (1 + Math.sin(i / 2))))),
    example: { jobId: '01936f3e-5f3e-7cc0-8000-000000000004', message },
  });
  const groups: Schemas['DeadGroups'] = {
    at: now, hoursSince: before(23 * 3600), jobs: 1284, total: 4, complete: true,
    groups: [
      group('EMAIL', 'SMTP.TIMEOUT', 1190, 'the mail server did not answer within 30 s', 50, 271),
      group('INVOICE', 'INVOICE.NO_ADDRESS', 71, 'customer 4711 has no billing address', 3, 70),
      group('EMAIL', null, 14, 'unexpected end of JSON input at offset 8192', 1, 12),
      group('REPORT', 'REPORT.QUOTA', 9, 'the bucket refused the upload: quota exceeded', 3, 0),
    ],
  };
  const health: Schemas['Health'] = {
    status: 'UP',
    components: { job: { status: 'UP', details: null }, db: { status: 'UP' }, kafka: { status: 'UP' } },
  };
  const alerts: Schemas['AlertPage'] = { alerts: [], nextCursor: null };
  return {
    '/api/alerts': alerts, '/api/stats': stats, '/api/workers': { workers: [worker('worker-1', 16), worker('worker-2', 5)], withoutWorker: [] }, '/api/controls': { controls },
    '/api/jobs/dead/groups': groups, '/api/lag': lag, '/api/health': health, '/api/queues/default/shares': shares,
  };
}
