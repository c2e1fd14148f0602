import { lazy, Suspense, useMemo, useState } from 'react';
import type { Schemas } from '../../api/client';
import { Link } from '../../app/Link';
import { paths } from '../../app/paths';
import { count, perSecond, share } from '../../format/number';
import { Card } from '../../ui/Card';
import { Segments } from '../../ui/Segments';
import { Skeleton } from '../../ui/Skeleton';
import { flowData, sum, type Span } from './flow';

const Plot = lazy(() => import('../../charts/Plot').then(({ Plot }) => ({ default: Plot })));

const SPANS = [
  { value: 'minutes', label: 'Hour' },
  { value: 'hours', label: 'Day' },
  { value: 'days', label: 'Month' },
] as const;

const EACH: Record<Span, string> = { minutes: 'a minute', hours: 'an hour', days: 'a day' };

const SERIES = [
  { label: 'Accepted', color: '--accent' },
  { label: 'Completed', color: '--completed' },
  { label: 'Failed', color: '--failed' },
  { label: 'Cancelled', color: '--cancelled' },
] as const;

/** ThroughputCard shows how many jobs were accepted and ended, over an hour, a day or a month. */
export function ThroughputCard({ throughput }: { throughput: Schemas['Throughput'] }) {
  const [span, setSpan] = useState<Span>('minutes');
  const flows = throughput[span];
  const data = useMemo(() => flowData(flows), [flows]);
  const total = sum(flows);
  const since = flows[0]?.at ?? '';
  const label = `Jobs ${EACH[span]}: ${count(total.accepted)} accepted, ${count(total.completed)} completed, ${count(total.failed)} failed`;
  return (
    <Card
      title={`Throughput, jobs ${EACH[span]}`}
      aside={<Segments label="Span of time" value={span} options={SPANS} onChange={setSpan} />}
    >
      <dl className="figures">
        <Figure name="accepted" value={count(total.accepted)} href={paths.jobs({ since })} />
        <Figure name="completed" value={count(total.completed)} href={paths.jobs({ status: 'COMPLETED', endedSince: since })} />
        <Figure
          name={`failed, ${share(total.failed, total.completed + total.failed + total.cancelled)} of what ended`}
          value={count(total.failed)}
          href={paths.jobs({ status: 'FAILED', endedSince: since })}
        />
        <Figure name="completed in the last minute" value={perSecond(throughput.perSecond['1m'].completed)} href={paths.jobs({ status: 'COMPLETED', endedSince: '1m' })} />
      </dl>
      <Suspense fallback={<Skeleton lines={6} />}>
        <Plot series={SERIES} data={data} height={220} unit="count" label={label} />
      </Suspense>
    </Card>
  );
}

function Figure({ name, value, href }: { name: string; value: string; href: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        <Link href={href}>{value}</Link>
      </dd>
    </div>
  );
}
