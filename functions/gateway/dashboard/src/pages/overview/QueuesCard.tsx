import { useState } from 'react';
import type { Schemas } from '../../api/client';
import { Link } from '../../app/Link';
import { paths } from '../../app/paths';
import { Card } from '../../ui/Card';
import { Count } from '../../ui/Measure';
import { Segments } from '../../ui/Segments';
import { STATUSES } from '../../ui/StatusBadge';
import { Table } from '../../ui/Table';

interface Props {
  queues: Schemas['QueueStats'][];
  types: Schemas['TypeStats'][];
}

const VIEWS = [
  { value: 'queue', label: 'Queues' },
  { value: 'type', label: 'Job types' },
] as const;

/** QueuesCard shows the counts by state for each queue or each job type. */
export function QueuesCard({ queues, types }: Props) {
  const [by, setBy] = useState<'queue' | 'type'>('queue');
  const rows = by === 'queue' ? queues.map((q) => ({ name: q.queue, jobs: q.jobs })) : types.map((t) => ({ name: t.jobType, jobs: t.jobs }));
  if (rows.length === 0) {
    return null;
  }
  return (
    <Card title="Where the jobs are" aside={<Segments label="Count by" value={by} options={VIEWS} onChange={setBy} />} flush>
      <Table caption={by === 'queue' ? 'Jobs by queue and state' : 'Jobs by type and state'}>
        <thead>
          <tr>
            <th scope="col">{by === 'queue' ? 'Queue' : 'Job type'}</th>
            {STATUSES.map((status) => (
              <th key={status} scope="col" className="number">
                {status}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ name, jobs }) => (
            <tr key={name}>
              <th scope="row">
                <Link href={paths.jobs({ [by]: name })}>{name}</Link>
              </th>
              {STATUSES.map((status) => (
                <td key={status} className="number">
                  {jobs[status] ? (
                    <Link href={paths.jobs({ [by]: name, status })} className="quiet-link">
                      <Count n={jobs[status]} />
                    </Link>
                  ) : (
                    <span className="muted">0</span>
                  )}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </Table>
    </Card>
  );
}
