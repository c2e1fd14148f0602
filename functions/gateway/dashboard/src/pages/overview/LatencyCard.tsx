import { useState } from 'react';
import type { Schemas } from '../../api/client';
import { Link } from '../../app/Link';
import { paths } from '../../app/paths';
import { Histogram } from '../../charts/Histogram';
import { Card } from '../../ui/Card';
import { Count, Duration } from '../../ui/Measure';
import { Segments } from '../../ui/Segments';
import { ENDED } from '../../ui/StatusBadge';
import { Table } from '../../ui/Table';
import { sinceOf, WINDOWS } from './window';

const CHOICES = [{ value: '5m', label: '5 min' }, ...WINDOWS] as const;

const ROWS = [
  { key: 'acceptToStart', name: 'Queue wait', means: 'until the first attempt' },
  { key: 'run', name: 'Run', means: 'of the last attempt' },
  { key: 'acceptToEnd', name: 'Total', means: 'until the end' },
] as const;

interface Props {
  latency: Schemas['LatencyByWindow'];
  throughput: Schemas['Throughput'];
  filter?: Record<string, string>; // of the jobs that are counted
}

/** LatencyCard shows how long jobs waited and ran, over five minutes, an hour, a day or a month. */
export function LatencyCard({ latency, throughput, filter = {} }: Props) {
  const [window, setWindow] = useState<keyof Schemas['LatencyByWindow']>('5m');
  const shown = latency[window];
  const endedSince = sinceOf(window, throughput);
  return (
    <Card
      title="Latency of jobs that ended"
      aside={<Segments label="Window of latency" value={window} options={CHOICES} onChange={setWindow} />}
      flush
    >
      <Table caption="Percentiles of waiting and running times">
        <thead>
          <tr>
            <th scope="col">Time</th>
            <th scope="col" className="number">
              p50
            </th>
            <th scope="col" className="number">
              p95
            </th>
            <th scope="col" className="number">
              p99
            </th>
            <th scope="col" className="number">
              Jobs
            </th>
          </tr>
        </thead>
        <tbody>
          {ROWS.map(({ key, name, means }) => (
            <tr key={key}>
              <th scope="row">
                {name}
                <span className="row-note">{means}</span>
              </th>
              <td className="number">
                <Duration ms={shown[key].p50Ms} />
              </td>
              <td className="number">
                <Duration ms={shown[key].p95Ms} />
              </td>
              <td className="number">
                <Duration ms={shown[key].p99Ms} />
              </td>
              <td className="number">
                <Link href={paths.jobs({ ...filter, status: ENDED, endedSince })} className="quiet-link">
                  <Count n={shown[key].count} />
                </Link>
              </td>
            </tr>
          ))}
        </tbody>
      </Table>
      {(shown.run.histogram || shown.acceptToStart.histogram) && (
        <div className="histograms">
          <Histogram name="Queue wait" bars={shown.acceptToStart.histogram ?? []} />
          <Histogram name="Run" bars={shown.run.histogram ?? []} />
        </div>
      )}
    </Card>
  );
}
