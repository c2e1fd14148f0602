import type { Site } from './fixtures';
import { call, Installation } from './installation';
import { Issuer } from './issuer';
import { seed } from './seed';

const traceUrl = 'https://traces.example.org/{traceId}';

/** setup starts an installation for all tests, with data for each page. */
export default async function setup(): Promise<() => Promise<void>> {
  const issuer = await Issuer.start();
  const installation = await Installation.start({ ...issuer.environment, TRACE_URL: traceUrl });
  const end = async () => {
    await installation.remove();
    issuer.stop();
  };
  try {
    const [acme, operator, reader, other, seeded] = await Promise.all([
      installation.key('acme', ['admin']),
      installation.key('acme', ['operate']),
      installation.key('acme', ['read']),
      installation.key('globex', ['admin']),
      seed(installation.url, installation.admin),
    ]);
    const site: Site = { url: installation.url, broker: installation.broker, admin: installation.admin, acme, operator, reader, other, seeded };
    await fill(site);
    process.env['DASHBOARD_SITE'] = JSON.stringify(site);
  } catch (error) {
    await end();
    throw error;
  }
  return end;
}

const simulation = (...steps: object[]) => ({ jobType: 'SIMULATION', payload: { steps } });

async function fill({ url, acme, other }: Site): Promise<void> {
  const post = (path: string, body: object, key = acme.key) => call<{ jobId: string }>(url, 'POST', path, body, key);
  const jobs = [
    { ...simulation({ type: 'SLEEP', durationMs: 20 }, { type: 'LOG', message: 'hello' }), tags: ['sample'] },
    { ...simulation({ type: 'FAIL', errorCode: 'DEMO.BROKEN', retryable: false }), tags: ['sample'] },
    { ...simulation({ type: 'SLEEP', durationMs: 600_000 }), tags: ['long'] },
    { ...simulation({ type: 'LOG', message: 'later' }), delayMs: 3_600_000, tags: ['later'] },
  ];
  await Promise.all(jobs.flatMap((job) => [post('/api/jobs', job), post('/api/jobs', job)]));
  await post('/api/jobs', { ...simulation({ type: 'LOG', message: 'secret of another' }), tags: ['globex-only'] }, other.key);
  await post('/api/batches', { name: 'imported', closed: true, jobs: [simulation({ type: 'LOG', message: 'imported' })] });
  await post('/api/flows', { name: 'ordered', jobs: { reserve: simulation({ type: 'LOG', message: 'reserved' }) } });
  await post('/api/schedules', {
    name: 'nightly', cron: '30 2 * * *', timeZone: 'Europe/Berlin',
    job: simulation({ type: 'LOG', message: 'good night' }),
  });
  await post('/api/operations', { command: 'reschedule', delayMs: 7_200_000, filter: { tag: 'later' } });
}
