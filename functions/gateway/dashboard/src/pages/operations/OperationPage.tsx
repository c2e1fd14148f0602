import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { answer, api, type Schemas } from '../../api/client';
import { Link } from '../../app/Link';
import { PageHeader } from '../../app/PageHeader';
import { paths } from '../../app/paths';
import { count, plural } from '../../format/number';
import { usePolling } from '../../live/live';
import { Card } from '../../ui/Card';
import { CopyButton } from '../../ui/CopyButton';
import { ErrorBox } from '../../ui/ErrorBox';
import { Fact, Facts } from '../../ui/Facts';
import { Fold } from '../../ui/Fold';
import { RelativeTime } from '../../ui/RelativeTime';
import { Skeleton } from '../../ui/Skeleton';
import { Table } from '../../ui/Table';
import { Abort, Progress, State } from './parts';
import { ended, target } from './words';

export default function OperationPage() {
  const { operationId = '' } = useParams({ strict: false }) as { operationId?: string };
  const polling = usePolling(1500);
  const found = useQuery({
    queryKey: ['operations', operationId],
    queryFn: () => answer(api.GET('/api/operations/{operationId}', { params: { path: { operationId } } })),
    refetchInterval: (query) => (query.state.data && ended(query.state.data) ? false : polling),
  });
  const operation = found.data;
  return (
    <div className="stack">
      <PageHeader
        title={operation ? `${operation.command} ${target(operation)}` : 'Operation'}
        lead={<Link href={paths.operations()}>All operations</Link>}
      >
        {operation && <Abort operation={operation} />}
      </PageHeader>
      {found.isError && <ErrorBox error={found.error} onRetry={() => void found.refetch()} />}
      {found.isPending && <Skeleton lines={8} />}
      {operation && <About operation={operation} />}
      {operation && operation.reasons.length > 0 && <Skipped operation={operation} />}
    </div>
  );
}

function About({ operation }: { operation: Schemas['Operation'] }) {
  const { progress } = operation;
  return (
    <Card title="Progress" aside={<State operation={operation} />}>
      <div className="stack">
        <div>
          <Progress operation={operation} />
        </div>
        <Facts>
          <Fact name="Id">
            <span className="mono">{operation.operationId}</span> <CopyButton text={operation.operationId} label="Copy the id" />
          </Fact>
          <Fact name="Jobs reached">{count(progress.matched)}</Fact>
          <Fact name="Carried out">{count(progress.applied)}</Fact>
          <Fact name="Not confirmed yet">{count(Math.max(0, progress.asked - progress.applied - progress.refused))}</Fact>
          <Fact name="Came too late">{count(progress.refused)}</Fact>
          <Fact name="Skipped">{count(progress.skipped)}</Fact>
          <Fact name="Began">
            <RelativeTime at={operation.createdAt} /> by {operation.by}
          </Fact>
          {operation.finishedAt !== null && (
            <Fact name="Ended">
              <RelativeTime at={operation.finishedAt} />
            </Fact>
          )}
          {operation.runAt !== null && (
            <Fact name="To run">
              <RelativeTime at={operation.runAt} />
            </Fact>
          )}
        </Facts>
      </div>
    </Card>
  );
}

function Skipped({ operation: { reasons, skippedJobs } }: { operation: Schemas['Operation'] }) {
  return (
    <Card title="Skipped jobs, by reason" flush>
      <Table caption="Reasons why jobs were skipped">
        <thead>
          <tr>
            <th scope="col">Reason</th>
            <th scope="col" className="number">
              Jobs
            </th>
          </tr>
        </thead>
        <tbody>
          {reasons.map(({ reason, jobs }) => (
            <tr key={reason}>
              <td>{reason}</td>
              <td className="number">{count(jobs)}</td>
            </tr>
          ))}
        </tbody>
      </Table>
      <Fold title="The jobs" note={skippedJobs.length >= 1000 ? 'the first 1,000' : plural(skippedJobs.length, 'job')}>
        {() => (
          <Table caption="Jobs that were skipped" cards>
            <thead>
              <tr>
                <th scope="col">Job</th>
                <th scope="col">Reason</th>
              </tr>
            </thead>
            <tbody>
              {skippedJobs.map(({ jobId, reason }) => (
                <tr key={jobId}>
                  <td>
                    <Link href={paths.job(jobId)} className="mono">
                      {jobId}
                    </Link>
                  </td>
                  <td>{reason}</td>
                </tr>
              ))}
            </tbody>
          </Table>
        )}
      </Fold>
    </Card>
  );
}
