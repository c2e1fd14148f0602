import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { useState } from 'react';
import { PageHeader } from '../../app/PageHeader';
import { usePolling } from '../../live/live';
import { useStream, useThrottled } from '../../live/useStream';
import { Card } from '../../ui/Card';
import { CopyButton } from '../../ui/CopyButton';
import { ErrorBox } from '../../ui/ErrorBox';
import { Skeleton } from '../../ui/Skeleton';
import { StatusBadge } from '../../ui/StatusBadge';
import { About, GroupLink } from './About';
import { Attempts } from './Attempts';
import { Dependencies } from './Dependencies';
import { Deliveries } from './Deliveries';
import { Folds } from './Folds';
import { Handled } from './Handled';
import { JobActions } from './JobActions';
import { OrderingKey } from './OrderingKey';
import { Outcome } from './Outcome';
import { hasEnded, jobQuery } from './queries';
import './Job.css';

/** JobPage shows what a job does, why, what it did before, and which commands are possible. */
export default function JobPage() {
  const { jobId = '' } = useParams({ strict: false });
  const client = useQueryClient();
  const [deleting, setDeleting] = useState(false); // no more requests then: the response would be a 404
  const ask = useThrottled(400, () => void client.invalidateQueries({ queryKey: ['job', jobId] }));
  const connected = useStream(jobId === '' || deleting ? null : { jobId }, ask);
  const often = usePolling(connected ? 15_000 : 1500);
  const seldom = usePolling(connected ? 30_000 : 6000);
  const query = useQuery({
    ...jobQuery(jobId),
    enabled: !deleting,
    refetchInterval: ({ state }) => (state.data && hasEnded(state.data) ? seldom : often),
  });
  const job = query.data;

  if (query.isPending) {
    return (
      <>
        <PageHeader title="Job" />
        <Skeleton lines={10} />
      </>
    );
  }
  if (!job) {
    return (
      <>
        <PageHeader title="Job" />
        <ErrorBox error={query.error} title="The job cannot be shown" onRetry={() => void query.refetch()} />
      </>
    );
  }
  return (
    <>
      <PageHeader
        title={job.jobType}
        lead={
          <span className="job-lead">
            <StatusBadge status={job.status} />{' '}
            <span className="job-id">
              <code>{job.jobId}</code> <CopyButton text={job.jobId} label="Copy the job id" />
            </span>
            <GroupLink job={job} flowsOnly />
          </span>
        }
      >
        <JobActions job={job} onDeleting={setDeleting} />
      </PageHeader>
      {query.isError && <ErrorBox error={query.error} title="This data may be out of date" onRetry={() => void query.refetch()} />}
      <Outcome job={job} />
      <div className="job-grid">
        <div className="stack">
          <Attempts job={job} />
          <Handled job={job} />
          <Folds job={job} />
          <Deliveries job={job} />
        </div>
        <div className="stack">
          <Card title="About">
            <About job={job} />
          </Card>
          <Dependencies job={job} />
          <OrderingKey job={job} />
        </div>
      </div>
    </>
  );
}
