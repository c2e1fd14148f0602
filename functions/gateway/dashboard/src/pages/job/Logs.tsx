import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { clock } from '../../format/time';
import { useTimes } from '../../format/times';
import { usePolling } from '../../live/live';
import { Button } from '../../ui/Button';
import { ErrorBox } from '../../ui/ErrorBox';
import { Segments } from '../../ui/Segments';
import { Skeleton } from '../../ui/Skeleton';
import { hasEnded, type Job, logsQuery, readLogs } from './queries';

/** Logs shows the lines of the job's attempts, and follows them to the end while the job runs. */
export function Logs({ job }: { job: Job }) {
  const [attempt, setAttempt] = useState('all');
  const box = useRef<HTMLOListElement>(null);
  const often = usePolling(1500);
  useTimes();
  const query = useQuery({ ...logsQuery(job.jobId, attempt), refetchInterval: hasEnded(job) ? false : often });
  const first = query.data?.nextCursor ?? null;
  const older = useInfiniteQuery({
    queryKey: ['older-logs', job.jobId, attempt, first],
    queryFn: ({ pageParam, signal }) => readLogs(job.jobId, attempt, pageParam, signal),
    initialPageParam: first,
    getNextPageParam: (page) => page.nextCursor,
    enabled: false, // until the user asks for them
    staleTime: Infinity,
  });
  const before = older.data?.pages.toReversed().flatMap((page) => page.logs) ?? [];
  const lines = [...before, ...(query.data?.logs ?? [])];
  const more = older.data ? older.hasNextPage : first !== null;

  useEffect(() => {
    const element = box.current;
    if (element && element.scrollHeight - element.scrollTop - element.clientHeight < 80) {
      element.scrollTop = element.scrollHeight;
    }
  }, [lines.length]);

  if (query.isPending) {
    return <Skeleton />;
  }
  if (query.isError) {
    return <ErrorBox error={query.error} title="The log cannot be shown" onRetry={() => void query.refetch()} />;
  }
  const attempts = Array.from({ length: Math.min(job.attempt, 10) }, (_, i) => String(job.attempt - i)).reverse();
  return (
    <div className="stack">
      {job.attempt > 1 && (
        <Segments
          label="Attempt"
          value={attempt}
          options={[{ value: 'all', label: 'All attempts' }, ...attempts.map((n) => ({ value: n, label: `#${n}` }))]}
          onChange={setAttempt}
        />
      )}
      {older.isError && <ErrorBox error={older.error} title="The older lines cannot be shown" />}
      {more && (
        <p>
          <Button small busy={older.isFetching} onClick={() => void (older.data ? older.fetchNextPage() : older.refetch())}>
            Show older lines
          </Button>
        </p>
      )}
      {lines.length === 0 ? (
        <p className="muted">The job has written no log lines.</p>
      ) : (
        <ol ref={box} className="log" tabIndex={0} aria-label="Log lines">
          {lines.map((line, i) => (
            <li key={i}>
              <time className="muted" dateTime={line.at} title={line.at}>
                {clock(line.at)}
              </time>
              <span className="muted">#{line.attempt}</span>
              <span className={`log-level log-${line.level.toLowerCase()}`}>{line.level}</span>
              <bdi className="log-text">{line.text}</bdi>
            </li>
          ))}
        </ol>
      )}
    </div>
  );
}
