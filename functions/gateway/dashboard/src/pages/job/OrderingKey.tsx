import { useQuery } from '@tanstack/react-query';
import { Link } from '../../app/Link';
import { paths } from '../../app/paths';
import { usePolling } from '../../live/live';
import { Card } from '../../ui/Card';
import { ErrorBox } from '../../ui/ErrorBox';
import { StatusBadge } from '../../ui/StatusBadge';
import { JobLine } from './JobLine';
import { neighboursQuery } from './neighbours';
import { hasEnded, type Job } from './queries';

/** OrderingKey shows the jobs before and after this one of its ordering key, in the order in which they run. */
export function OrderingKey({ job }: { job: Job }) {
  const polling = usePolling(5000);
  const query = useQuery({ ...neighboursQuery(job), refetchInterval: hasEnded(job) ? false : polling });
  const { orderingKey } = job;
  if (orderingKey === null) {
    return null;
  }
  return (
    <Card title="Ordering key" aside={<Link href={paths.jobs({ orderingKey })}>All jobs of {orderingKey}</Link>}>
      {query.isError && <ErrorBox error={query.error} onRetry={() => void query.refetch()} />}
      <ol className="neighbours">
        {query.data?.before.map((other) => (
          <li key={other.jobId}>
            <JobLine job={other} />
          </li>
        ))}
        <li aria-current="true">
          <strong>This job</strong> <StatusBadge status={job.status} />
        </li>
        {query.data?.after.map((other) => (
          <li key={other.jobId}>
            <JobLine job={other} />
          </li>
        ))}
      </ol>
      <p className="small muted">These jobs run one after another, in this order.</p>
    </Card>
  );
}
