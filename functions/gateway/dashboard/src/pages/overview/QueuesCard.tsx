import { useState } from 'react';
import type { Schemas } from '../../api/client';
import { Card } from '../../ui/Card';
import { Segments } from '../../ui/Segments';
import { CountsTable } from './CountsTable';

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
      <CountsTable by={by} rows={rows} />
    </Card>
  );
}
