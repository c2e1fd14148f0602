import { useQueries } from '@tanstack/react-query';
import { duration } from '../../format/time';
import { usePolling } from '../../live/live';
import { type Attempt } from './attemptRows';
import { differences, type Part, wordDifferences } from './differences';
import { hasEnded, type Job, logsQuery, type LogLine } from './queries';

const LINES = 12; // of each log

/** Compared shows the errors and the last log lines of one attempt, or of two side by side with their differences marked. */
export function Compared({ job, attempts }: { job: Job; attempts: readonly Attempt[] }) {
  const often = usePolling(1500);
  const logs = useQueries({
    queries: attempts.map(({ attempt }) => ({ ...logsQuery(job.jobId, String(attempt)), refetchInterval: hasEnded(job) ? (false as const) : often })),
  });
  const lines = logs.map((log) => log.data?.logs.slice(-LINES));
  const [one, other] = attempts;
  const messages = wordDifferences(one?.message ?? '', other?.message ?? '');
  const differ = differences(textsOf(lines[0]), textsOf(lines[1]));
  const known = lines[0] !== undefined && lines[1] !== undefined;
  return (
    <div className="compared" role="group" aria-label={attempts.length === 2 ? `Attempts ${one?.attempt} and ${other?.attempt} compared` : `Attempt ${one?.attempt}`}>
      {attempts.map((attempt, i) => {
        const beside = attempts[1 - i];
        return (
          <section key={attempt.attempt} className="compared-side" aria-label={`Attempt ${attempt.attempt}`}>
            <p className="compared-head">
              <strong>#{attempt.attempt}</strong> {attempt.outcome ?? 'running'}{' '}
              {attempt.errorCode && <Marked differs={beside !== undefined && beside.errorCode !== attempt.errorCode}>{attempt.errorCode}</Marked>}{' '}
              {attempt.workerId && <Marked differs={beside !== undefined && beside.workerId !== attempt.workerId}>{attempt.workerId}</Marked>}{' '}
              {attempt.startedAt && attempt.finishedAt && duration(Date.parse(attempt.finishedAt) - Date.parse(attempt.startedAt))}
            </p>
            <Message parts={beside ? (messages[i] ?? []) : [{ text: attempt.message ?? '', differs: false }]} />
            <Log lines={lines[i]} failed={logs[i]?.isError ?? false} differ={beside !== undefined && known ? (differ[i] ?? []) : []} />
          </section>
        );
      })}
      {attempts.length === 1 && job.attempts.length > 1 && <p className="small muted">Tick a second attempt to compare the two.</p>}
    </div>
  );
}

const textsOf = (lines: readonly LogLine[] = []) => lines.map(({ level, text }) => `${level} ${text}`);

function Marked({ differs, children }: { differs: boolean; children: string }) {
  return differs ? (
    <mark>
      <bdi>{children}</bdi>
    </mark>
  ) : (
    <bdi>{children}</bdi>
  );
}

function Message({ parts }: { parts: readonly Part[] }) {
  if (parts.every(({ text }) => text === '')) {
    return <p className="muted">no message</p>;
  }
  return <p dir="auto">{parts.map(({ text, differs }, i) => (differs ? <mark key={i}>{text}</mark> : <span key={i}>{text}</span>))}</p>;
}

function Log({ lines, failed, differ }: { lines: readonly LogLine[] | undefined; failed: boolean; differ: readonly boolean[] }) {
  if (lines === undefined) {
    return <p className="muted">{failed ? 'The log cannot be shown.' : 'The log is being read …'}</p>;
  }
  if (lines.length === 0) {
    return <p className="muted">no log lines</p>;
  }
  return (
    <ol aria-label="Last log lines" className="compared-log">
      {lines.map(({ level, text }, i) => (
        <li key={i} className={`log-${level.toLowerCase()}`}>
          <span className="log-level">{level}</span> {differ[i] ? <mark dir="auto">{text}</mark> : <bdi>{text}</bdi>}
        </li>
      ))}
    </ol>
  );
}
