import { useState } from 'react';
import { count, plural } from '../../format/number';
import { duration, instant } from '../../format/time';
import { Badge } from '../../ui/Badge';
import { Button } from '../../ui/Button';
import { Card } from '../../ui/Card';
import { Fold } from '../../ui/Fold';
import { useNow } from '../../ui/now';
import { StatusBadge } from '../../ui/StatusBadge';
import { Table } from '../../ui/Table';
import { causeOf, OUTCOMES, type Row, rowsOf, tick, wayOf, whyOf } from './attemptRows';
import { Compared } from './Compared';
import type { Job } from './queries';
import { spanName, type Span } from './timeline';

const AT_FIRST = 10; // attempts that are shown at first, from the newest back
const STATES = 12; // of the way that is shown

/** Attempts shows when each attempt of the job waited and ran, where, and how it ended; two of them can be compared. */
export function Attempts({ job }: { job: Job }) {
  const now = useNow();
  const [ticked, setTicked] = useState<number[]>([]);
  const [all, setAll] = useState(false);
  const rows = rowsOf(job, now.getTime());
  const shown = all ? rows : rows.slice(-AT_FIRST);
  const spans = shown.flatMap((row) => row.spans);
  const axis = { from: Math.min(...spans.map((span) => span.from)), to: Math.max(...spans.map((span) => span.to)) };
  const compared = ticked.flatMap((number) => job.attempts.filter((each) => each.attempt === number)).sort((a, b) => a.attempt - b.attempt);
  return (
    <Card title="Attempts" aside={job.attempts.length > 1 && <span className="small muted">Tick two to compare them</span>} flush>
      {shown.length < rows.length && (
        <p className="card-text">
          <Button small onClick={() => setAll(true)}>
            Show {plural(rows.length - shown.length, 'earlier attempt')}
          </Button>
        </p>
      )}
      {shown.length > 0 && (
        <Table caption="Attempts, first one first" cards>
          <thead>
            <tr>
              <th scope="col">Attempt</th>
              <th scope="col" className="attempt-ran">
                Waited and ran
              </th>
              <th scope="col">Worker</th>
              <th scope="col">Error</th>
              <th scope="col">When</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((row) => (
              <AttemptRow
                key={row.number}
                job={job}
                row={row}
                axis={axis}
                ticked={ticked.includes(row.number)}
                onTick={() => setTicked(tick(ticked, row.number))}
              />
            ))}
          </tbody>
        </Table>
      )}
      {compared.length > 0 && <Compared job={job} attempts={compared} />}
      <Legend job={job} spans={spans} axis={axis} />
      <Way job={job} />
      <Fold title="All moves between states" note={count(job.history.length)}>
        {() => <History job={job} />}
      </Fold>
    </Card>
  );
}

interface Axis {
  from: number;
  to: number;
}

interface RowProps {
  job: Job;
  row: Row;
  axis: Axis;
  ticked: boolean;
  onTick: () => void;
}

function AttemptRow({ job, row, axis, ticked, onTick }: RowProps) {
  const { number, attempt, spans } = row;
  const at = attempt?.startedAt ?? attempt?.finishedAt ?? null;
  return (
    <tr className={ticked ? 'attempt-ticked' : ''}>
      <th scope="row">
        {attempt ? (
          <label className="attempt-tick">
            <input type="checkbox" checked={ticked} onChange={onTick} aria-label={`Compare attempt ${number}`} /> #{number}
          </label>
        ) : (
          <span className="attempt-next">#{number}</span>
        )}{' '}
        <End job={job} row={row} />
      </th>
      <td className="attempt-ran cell-whole">
        <span className="attempt-bars">
          <span className="attempt-track" aria-hidden="true">
            {spans.map((span) => (
              <SpanBar key={`${span.kind} ${span.from}`} name={spanName(span.kind, job)} span={span} axis={axis} />
            ))}
          </span>
          <span className="tabular">{lengthOf(spans)}</span>
        </span>
      </td>
      <td data-label="Worker" className={`attempt-worker ${attempt?.workerId ? '' : 'cell-empty'}`}>
        {attempt?.workerId ? <bdi className="mono">{attempt.workerId}</bdi> : <span className="muted">–</span>}
      </td>
      <td className={`attempt-error cell-whole ${attempt?.errorCode || attempt?.message ? '' : 'cell-empty'}`}>
        {attempt?.errorCode && <code>{attempt.errorCode}</code>} {attempt?.message && <bdi>{attempt.message}</bdi>}
      </td>
      <td className={`attempt-when ${at === null ? 'cell-empty' : ''}`}>{at === null ? <span className="muted">–</span> : <time dateTime={at}>{instant(at)}</time>}</td>
    </tr>
  );
}

function End({ job, row: { attempt, spans } }: { job: Job; row: Row }) {
  if (attempt?.outcome) {
    const { tone, meaning } = OUTCOMES[attempt.outcome];
    return (
      <span title={meaning}>
        <Badge tone={tone}>{attempt.outcome}</Badge>
      </span>
    );
  }
  const last = spans.at(-1);
  return <Badge>{last ? spanName(last.kind, job) : 'running'}</Badge>;
}

function SpanBar({ name, span, axis }: { name: string; span: Span; axis: Axis }) {
  const whole = axis.to - axis.from || 1;
  const style = {
    left: `min(${((span.from - axis.from) / whole) * 100}%, 100% - 3px)`,
    width: `${((span.to - span.from) / whole) * 100}%`,
  };
  const until = span.open ? 'now' : instant(new Date(span.to));
  return (
    <span
      className={`attempt-bar span-${span.kind} ${span.open ? 'span-open' : ''}`}
      title={`${name} ${duration(span.to - span.from)}, ${instant(new Date(span.from))} to ${until}`}
      style={style}
    />
  );
}

/** lengthOf returns how long the attempt ran, or else how long it waits. */
function lengthOf(spans: readonly Span[]): string {
  const ran = spans.filter((span) => span.kind === 'running');
  const counted = ran.length > 0 ? ran : spans;
  const ms = counted.reduce((sum, span) => sum + span.to - span.from, 0);
  return counted.length === 0 ? '–' : ms === 0 && !counted.some((span) => span.open) ? '<1 ms' : duration(ms);
}

function Legend({ job, spans, axis }: { job: Job; spans: readonly Span[]; axis: Axis }) {
  if (spans.length === 0) {
    return null;
  }
  return (
    <p className="small muted row-wrap attempt-note">
      {duration(axis.to - axis.from)} in all
      {[...new Set(spans.map((span) => span.kind))].map((kind) => (
        <span key={kind} className="row">
          <span className={`legend-mark span-${kind}`} aria-hidden="true" /> {spanName(kind, job)}
        </span>
      ))}
    </p>
  );
}

function Way({ job }: { job: Job }) {
  const way = wayOf(job);
  const shown = way.slice(-STATES);
  return (
    <p className="small muted attempt-note">
      <span className="visually-hidden">The states of the job: </span>
      {shown.length < way.length && '… → '}
      {shown.join(' → ')}
    </p>
  );
}

function History({ job }: { job: Job }) {
  return (
    <Table caption="Moves between states, oldest first" cards>
      <thead>
        <tr>
          <th scope="col">At</th>
          <th scope="col">To</th>
          <th scope="col">Attempt</th>
          <th scope="col">By</th>
          <th scope="col">Why</th>
        </tr>
      </thead>
      <tbody>
        {job.history.map((move, i) => (
          <tr key={i}>
            <td className="tabular">
              <time dateTime={move.at}>{instant(move.at)}</time>
            </td>
            <td>
              <StatusBadge status={move.to} />
            </td>
            <td data-label="Attempt">{move.attempt}</td>
            <td data-label="By">{causeOf(move)}</td>
            <td className="cell-whole">{whyOf(move, job.attempts) || <span className="muted">–</span>}</td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}
