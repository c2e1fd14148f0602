import { useState } from 'react';
import { stringify } from '../../api/json';
import { useMay } from '../../api/me';
import { Link } from '../../app/Link';
import { paths } from '../../app/paths';
import { bytes, plural } from '../../format/number';
import { duration } from '../../format/time';
import { Button } from '../../ui/Button';
import { Card } from '../../ui/Card';
import { Code } from '../../ui/Code';
import { Fold } from '../../ui/Fold';
import { useNow } from '../../ui/now';
import { RelativeTime } from '../../ui/RelativeTime';
import { StatusBadge } from '../../ui/StatusBadge';
import { Table } from '../../ui/Table';
import { type HandlerRow, handlerRows, type Wait } from './handlerRows';
import { hasEnded, type Job } from './queries';
import { SendEventDialog } from './SendEventDialog';

const AT_FIRST = 20; // rows that are shown at first, from the newest back

/** Handled shows what the handler of the job did: its steps, and what it slept or waited for. */
export function Handled({ job }: { job: Job }) {
  const may = useMay();
  const [sending, setSending] = useState<Wait | null>(null);
  const [all, setAll] = useState(false);
  const rows = handlerRows(job);
  if (rows.length === 0) {
    return null;
  }
  const shown = all ? rows : rows.slice(-AT_FIRST);
  return (
    <Card title="What the handler did" flush>
      {shown.length < rows.length && (
        <p className="card-text">
          <Button small onClick={() => setAll(true)}>
            Show {plural(rows.length - shown.length, 'earlier row')}
          </Button>
        </p>
      )}
      <Table caption="What the handler did, first one first" cards>
        <thead>
          <tr>
            {['Name', 'Kind', 'State', 'When', 'Took', 'Attempt'].map((head) => (
              <th key={head} scope="col">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.map((row) => (
            <tr key={`${row.kind} ${row.name} ${row.at}`}>
              <td className="cell-title">{row.name || <span className="muted">–</span>}</td>
              <td>{row.kind}</td>
              <td className="handled-state cell-whole">
                <State job={job} row={row} />
                {row.wait?.event && row.wait.status === 'OPEN' && !hasEnded(job) && may('submit') && (
                  <Button small onClick={() => setSending(row.wait!)}>
                    Send the event
                  </Button>
                )}
              </td>
              <td>
                <RelativeTime at={new Date(row.at).toISOString()} />
              </td>
              <td data-label="Took" className={row.took === null ? 'cell-empty' : ''}>
                {row.took === null ? '–' : duration(row.took)}
              </td>
              <td data-label="Attempt">#{row.attempt}</td>
            </tr>
          ))}
        </tbody>
      </Table>
      {sending?.event && <SendEventDialog event={sending.event} onClose={() => setSending(null)} />}
    </Card>
  );
}

/** State is how a row stands, with what came of it. */
function State({ job, row: { kind, end, step, wait } }: { job: Job; row: HandlerRow }) {
  const now = useNow().getTime();
  if (step && kind === 'step') {
    const hidden = step.result === null && step.bytes > 4; // null has four bytes
    return hidden ? <>{bytes(step.bytes)}, not shown here</> : <Content title="result" note={bytes(step.bytes)} value={step.result} />;
  }
  if (!wait) {
    return end !== null && end <= now ? 'over' : hasEnded(job) ? 'the job ended first' : end === null ? 'on' : <Until at={end} />;
  }
  return (
    <>
      {wait.job && (
        <>
          <Link href={paths.job(wait.job.jobId)}>
            {wait.job.jobType} <span className="mono">{wait.job.jobId.slice(-12)}</span>
          </Link>{' '}
          <StatusBadge status={wait.job.status} />
        </>
      )}
      {wait.received ? (
        <Content title="came" note={wait.received.source} value={wait.received} />
      ) : (
        wait.event && <Content title={WAITS[wait.status]} note={wait.event.type} value={wait.event} />
      )}
      {wait.status === 'OPEN' && wait.until !== null && <Until at={Date.parse(wait.until)} />}
    </>
  );
}

const WAITS = { OPEN: 'waits', DONE: 'done', TIMED_OUT: 'its time was over', CLOSED: 'the job ended first' };

function Until({ at }: { at: number }) {
  return (
    <span>
      until <RelativeTime at={new Date(at).toISOString()} />
    </span>
  );
}

function Content({ title, note, value }: { title: string; note: string; value: unknown }) {
  return (
    <Fold title={title} note={note}>
      {() => <Code text={stringify(value, 2)} label={title} />}
    </Fold>
  );
}
