import { useState } from 'react';
import { useMay } from '../../api/me';
import { Link } from '../../app/Link';
import { paths } from '../../app/paths';
import { Button } from '../../ui/Button';
import { Card } from '../../ui/Card';
import { RelativeTime } from '../../ui/RelativeTime';
import { StatusBadge } from '../../ui/StatusBadge';
import { hasEnded, type Job } from './queries';
import { SendEventDialog } from './SendEventDialog';

type Wait = Job['waits'][number];

/** Waits shows what the handler of the job waits for, or has waited for: events, and jobs that it has called. */
export function Waits({ job }: { job: Job }) {
  const may = useMay();
  const [sending, setSending] = useState<Wait | null>(null);
  if (job.waits.length === 0) {
    return null;
  }
  return (
    <Card title="Waits">
      <ul className="waits">
        {job.waits.map((wait) => (
          <li key={wait.name}>
            <div className="row-wrap">
              <strong>{wait.name}</strong>
              <Standing wait={wait} />
              {wait.status === 'OPEN' && wait.event && !hasEnded(job) && may('submit') && (
                <Button small onClick={() => setSending(wait)}>
                  Send the event
                </Button>
              )}
            </div>
            {wait.event && (
              <p className="small muted">
                an event <code>{wait.event.type}</code>
                {wait.event.match && Object.keys(wait.event.match).length > 0 && (
                  <>
                    {' '}
                    with <code>{JSON.stringify(wait.event.match)}</code>
                  </>
                )}
              </p>
            )}
            {wait.received && (
              <p className="small">
                came from <code>{wait.received.source}</code> as <code>{wait.received.id}</code>
                {wait.received.data !== undefined && <code className="waits-data">{JSON.stringify(wait.received.data)}</code>}
              </p>
            )}
            {wait.job && (
              <p className="small">
                <Link href={paths.job(wait.job.jobId)}>
                  {wait.job.jobType} <span className="mono">{wait.job.jobId.slice(-12)}</span>
                </Link>{' '}
                <StatusBadge status={wait.job.status} />
              </p>
            )}
          </li>
        ))}
      </ul>
      {sending?.event && <SendEventDialog event={sending.event} onClose={() => setSending(null)} />}
    </Card>
  );
}

function Standing({ wait }: { wait: Wait }) {
  switch (wait.status) {
    case 'OPEN':
      return (
        <span className="small muted">
          since <RelativeTime at={wait.createdAt} />
          {wait.until !== null && (
            <>
              , at most until <RelativeTime at={wait.until} />
            </>
          )}
        </span>
      );
    case 'DONE':
      return (
        <span className="small muted">
          done <RelativeTime at={wait.doneAt} />
        </span>
      );
    case 'TIMED_OUT':
      return <span className="small muted">its time was over</span>;
    case 'CLOSED':
      return <span className="small muted">the job ended first</span>;
  }
}
