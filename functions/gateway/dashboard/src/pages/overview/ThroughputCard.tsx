import { useRouter } from '@tanstack/react-router';
import { useState } from 'react';
import type { Schemas } from '../../api/client';
import { Link } from '../../app/Link';
import { paths } from '../../app/paths';
import { FlowChart, type Mark } from '../../charts/FlowChart';
import { count, perSecond, share } from '../../format/number';
import { Card } from '../../ui/Card';
import { Segments } from '../../ui/Segments';
import { ENDED } from '../../ui/StatusBadge';
import { EndedForm } from './EndedForm';
import { sum, type Span } from './flow';

const SPANS = [
  { value: 'minutes', label: 'Hour' },
  { value: 'hours', label: 'Day' },
  { value: 'days', label: 'Month' },
] as const;

const EACH: Record<Span, string> = { minutes: 'a minute', hours: 'an hour', days: 'a day' };
const WITHIN: Record<Span, string> = { minutes: 'in the last hour', hours: 'in the last day', days: 'in the last 30 days' };
const SECONDS: Record<Span, number> = { minutes: 60, hours: 3600, days: 86_400 };

interface Props {
  throughput: Schemas['Throughput'];
  filter?: Record<string, string>; // of the jobs that are counted
  marks?: readonly Mark[];
}

/** ThroughputCard shows how many jobs were accepted and ended, over an hour, a day or a month, and leads to those of a span of time. */
export function ThroughputCard({ throughput, filter = {}, marks = [] }: Props) {
  const { history } = useRouter();
  const [span, setSpan] = useState<Span>('minutes');
  const flows = throughput[span];
  const total = sum(flows);
  const since = flows[0]?.at ?? '';
  const ended = (endedSince: string, endedUntil: string) => history.push(paths.jobs({ ...filter, status: ENDED, endedSince, endedUntil }));
  const label = `Jobs ${EACH[span]}: ${count(total.accepted)} accepted, ${count(total.completed)} completed, ${count(total.failed)} failed`;
  const { accepted, completed } = throughput.perSecond['1m'];
  return (
    <Card
      title={`Throughput, jobs ${EACH[span]}`}
      aside={<Segments label="Span of time" value={span} options={SPANS} onChange={setSpan} />}
    >
      <dl className="figures">
        <Figure name={`accepted ${WITHIN[span]}`} value={count(total.accepted)} href={paths.jobs({ ...filter, since })} />
        <Figure name="completed" value={count(total.completed)} href={paths.jobs({ ...filter, status: 'COMPLETED', endedSince: since })} />
        <Figure
          name={`failed, ${share(total.failed, total.completed + total.failed + total.cancelled)} of what ended`}
          value={count(total.failed)}
          href={paths.jobs({ ...filter, status: 'FAILED', endedSince: since })}
        />
        <Figure name="in and out now" value={`${perSecond(accepted)}, ${perSecond(completed)}`} href={paths.jobs({ ...filter, status: 'COMPLETED', endedSince: '1m' })} />
      </dl>
      <FlowChart buckets={flows} seconds={SECONDS[span]} marks={marks} label={label} onSelect={ended} />
      <EndedForm onShow={ended} />
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
