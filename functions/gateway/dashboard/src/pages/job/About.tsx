import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { useMe } from '../../api/me';
import { Link } from '../../app/Link';
import { paths } from '../../app/paths';
import { CopyButton } from '../../ui/CopyButton';
import { RelativeTime } from '../../ui/RelativeTime';
import { batchQuery } from '../batches/queries';
import type { Job } from './queries';
import { traceAddress } from './trace';

/** About shows the properties of the job; shared ones link to the jobs that share them. */
export function About({ job }: { job: Job }) {
  const { traceUrl } = useMe();
  return (
    <dl className="about">
      <Fact name="Job type">
        <Link href={paths.type(job.jobType)}>{job.jobType}</Link>
      </Fact>
      <Fact name="Queue">
        <Link href={paths.queue(job.queue)}>{job.queue}</Link>
      </Fact>
      <Fact name="Owner">{job.ownerId && <Link href={paths.jobs({ ownerId: job.ownerId })}>{job.ownerId}</Link>}</Fact>
      {job.fairnessKey !== job.ownerId && <Fact name="Fairness key">{job.fairnessKey}</Fact>}
      <Fact name="Priority">{job.priority}</Fact>
      <Fact name="Attempt">{job.attempt}</Fact>
      <Fact name="Retries">
        {job.retryCount} of {job.maxRetryCount}
      </Fact>
      <Fact name="Accepted">
        <RelativeTime at={job.createdAt} />
      </Fact>
      <Moment name="Asked to run" at={job.runAt} />
      <Moment name="Next run" at={job.nextRunAt} />
      <Moment name="Started" at={job.startedAt} />
      <Moment name="Ended" at={job.finishedAt} />
      <Moment name="Expires" at={job.expiresAt} />
      <Fact name="Tags">
        {job.tags.length > 0 &&
          job.tags.map((tag) => (
            <Link key={tag} href={paths.jobs({ tag })} className="tag">
              {tag}
            </Link>
          ))}
      </Fact>
      <Fact name="Ordering key">
        {job.orderingKey && (
          <Link href={paths.jobs({ orderingKey: job.orderingKey })} title="The jobs before and after it">
            {job.orderingKey}
          </Link>
        )}
      </Fact>
      <GroupFact job={job} />
      <Fact name="Fan-out">
        {job.element && (
          <>
            <Link href={paths.job(job.element.fanOutId)} className="mono">
              {job.element.fanOutId}
            </Link>
            , element {job.element.index}
          </>
        )}
      </Fact>
      <Fact name="Elements">
        {job.forEach && <Link href={paths.jobs({ fanOutId: job.jobId })}>Jobs of the elements</Link>}
      </Fact>
      <Fact name="Unique key">{job.unique?.key}</Fact>
      <Fact name="Throttle key">{job.throttle && `${job.throttle.key}, every ${job.throttle.perMs / 1000} s`}</Fact>
      <Fact name="Singleton key">{job.singleton?.key}</Fact>
      <Fact name="Debounce key">
        {job.debounce && `${job.debounce.key}${job.held ? ', held: further requests with this key change the job' : ''}`}
      </Fact>
      <Fact name="Schedule">
        {job.schedule && (
          <>
            <Link href={paths.schedule({ name: job.schedule.name, ownerId: job.ownerId })}>{job.schedule.name}</Link>, tick <RelativeTime at={job.schedule.at} />
          </>
        )}
      </Fact>
      <Fact name="Event">{job.event && `${job.event.id} of ${job.event.source}`}</Fact>
      <Fact name="Called by">{job.parentId && <Link href={paths.job(job.parentId)}>{job.parentId}</Link>}</Fact>
      <Fact name="Runs again">{job.runAgainOf && <Link href={paths.job(job.runAgainOf)}>{job.runAgainOf}</Link>}</Fact>
      <Fact name="Run again as">{job.runAgainAs && <Link href={paths.job(job.runAgainAs)}>{job.runAgainAs}</Link>}</Fact>
      <Fact name="Callback">{job.callbackUrl}</Fact>
      <Fact name="Trace id">
        <Link href={paths.jobs({ traceId: job.traceId })} className="mono" title="All jobs of this trace">
          {job.traceId}
        </Link>{' '}
        <CopyButton text={job.traceId} label="Copy the trace id" />
      </Fact>
      <Fact name="Trace">
        {traceUrl !== null && (
          <a href={traceAddress(traceUrl, job.traceId)} target="_blank" rel="noopener noreferrer">
            Open the trace
          </a>
        )}
      </Fact>
      <Fact name="Version">{job.version}</Fact>
    </dl>
  );
}

function GroupFact({ job }: { job: Job }) {
  const { data: batch } = useQuery({ ...batchQuery(job.batchId ?? ''), enabled: Boolean(job.batchId), staleTime: 60_000 });
  return <Fact name={batch?.isFlow ? 'Flow' : 'Batch'}>{job.batchId && <GroupLink job={job} />}</Fact>;
}

/** GroupLink leads to the flow of the job, where it is marked, or to its batch. */
export function GroupLink({ job, flowsOnly = false }: { job: Job; flowsOnly?: boolean }) {
  const { data: batch } = useQuery({ ...batchQuery(job.batchId ?? ''), enabled: Boolean(job.batchId), staleTime: 60_000 });
  if (!job.batchId || (flowsOnly && !batch?.isFlow)) {
    return null;
  }
  const href = batch?.isFlow ? paths.flow(job.batchId, job.element?.fanOutId ?? job.jobId) : paths.batch(job.batchId);
  return (
    <>
      {flowsOnly && 'in the flow '}
      <Link href={href} {...(batch?.name ? {} : { className: 'mono' })}>
        <bdi>{batch?.name ?? job.batchId}</bdi>
      </Link>
    </>
  );
}

/** Fact shows a property, if the job has it. */
function Fact({ name, children }: { name: string; children: ReactNode }) {
  if (children === null || children === undefined || children === false || children === '') {
    return null;
  }
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Moment({ name, at }: { name: string; at: string | null }) {
  return <Fact name={name}>{at && <RelativeTime at={at} />}</Fact>;
}
