import { useQuery } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { stringify } from '../../api/json';
import { Link } from '../../app/Link';
import { paths } from '../../app/paths';
import { usePolling } from '../../live/live';
import { IconButton } from '../../ui/Button';
import { Code } from '../../ui/Code';
import { ErrorBox } from '../../ui/ErrorBox';
import { Skeleton } from '../../ui/Skeleton';
import { StatusBadge } from '../../ui/StatusBadge';
import { Logs } from '../job/Logs';
import { hasEnded, type Job, jobQuery } from '../job/queries';
import { countsText, type GraphNode } from './nodes';

/** Panel shows the error, the log and the output of a job of a flow, beside the graph. */
export function Panel({ name, jobId, onClose }: { name: string; jobId: string; onClose: () => void }) {
  const often = usePolling(2000);
  const query = useQuery({ ...jobQuery(jobId), refetchInterval: ({ state }) => (state.data && hasEnded(state.data) ? false : often) });
  return (
    <Box name={name} focusOn={jobId} onClose={onClose}>
      {query.isPending && <Skeleton lines={4} />}
      {query.isError && <ErrorBox error={query.error} title="The job cannot be shown" onRetry={() => void query.refetch()} />}
      {query.data && <Content job={query.data} />}
    </Box>
  );
}

/** GroupPanel leads to the jobs of a node that are too many to be drawn one by one. */
export function GroupPanel({ node, flowId, onClose }: { node: GraphNode; flowId: string; onClose: () => void }) {
  const type = node.jobs[0]?.jobType ?? '';
  return (
    <Box name={node.name} focusOn={node.key} onClose={onClose}>
      <p>{countsText(node.counts)}</p>
      <p className="row-wrap">
        <Link href={paths.jobs({ batchId: flowId, type })}>All of them</Link>
        {(node.counts.FAILED ?? 0) > 0 && <Link href={paths.jobs({ batchId: flowId, type, status: 'FAILED' })}>Those that failed</Link>}
      </p>
    </Box>
  );
}

interface BoxProps {
  name: string;
  focusOn: string; // another value: another job is shown
  onClose: () => void;
  children: React.ReactNode;
}

function Box({ name, focusOn, onClose, children }: BoxProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), [focusOn]); // which also scrolls to it on a phone
  return (
    <section
      className="card flow-panel stack"
      aria-label={`The job ${name}`}
      onKeyDown={(event) => {
        if (event.key === 'Escape') {
          onClose();
        }
      }}
    >
      <header className="card-head">
        <h2 ref={heading} tabIndex={-1}>
          <bdi>{name}</bdi>
        </h2>
        <IconButton icon="close" label="Close" onClick={onClose} />
      </header>
      {children}
    </section>
  );
}

function Content({ job }: { job: Job }) {
  return (
    <>
      <p className="row-wrap">
        <StatusBadge status={job.status} /> <span className="muted">{job.jobType}</span> <Link href={paths.job(job.jobId)}>Open the job</Link>
        {job.forEach && <Link href={paths.jobs({ fanOutId: job.jobId })}>Jobs of the elements</Link>}
      </p>
      {job.lastError && (
        <p className="banner banner-bad">
          <code>{job.lastError.errorCode}</code> <bdi>{job.lastError.message}</bdi>
        </p>
      )}
      <h3>Log</h3>
      <Logs job={job} />
      {job.output !== null && job.output !== undefined && (
        <>
          <h3>Output</h3>
          <Code text={stringify(job.output, 2)} label="the output" />
        </>
      )}
    </>
  );
}
