import { useInfiniteQuery } from '@tanstack/react-query';
import { answer, api } from '../../api/client';
import { Link } from '../../app/Link';
import { PageHeader } from '../../app/PageHeader';
import { paths } from '../../app/paths';
import { usePolling } from '../../live/live';
import { Card } from '../../ui/Card';
import { EmptyState } from '../../ui/EmptyState';
import { ErrorBox } from '../../ui/ErrorBox';
import { LoadMore } from '../../ui/LoadMore';
import { RelativeTime } from '../../ui/RelativeTime';
import { Skeleton } from '../../ui/Skeleton';
import { Table } from '../../ui/Table';
import { Progress, State } from './parts';
import { type BatchSummary, nameOf } from './queries';

export default function BatchesPage() {
  const polling = usePolling(5000);
  const list = useInfiniteQuery({
    queryKey: ['batches'],
    queryFn: ({ pageParam }) =>
      answer(api.GET('/api/batches', { params: { query: { limit: 50, ...(pageParam ? { cursor: pageParam } : {}) } } })),
    initialPageParam: '',
    getNextPageParam: (page) => page.nextCursor,
    refetchInterval: polling,
  });
  const batches = list.data?.pages.flatMap((page) => page.batches) ?? [];
  return (
    <div className="stack">
      <PageHeader title="Batches" lead="Jobs that end together: their progress, and the job that follows them." />
      {list.isError && <ErrorBox error={list.error} onRetry={() => void list.refetch()} />}
      {list.isPending && <Skeleton lines={6} />}
      {list.isSuccess && batches.length === 0 && (
        <EmptyState icon="batches" title="No batch yet">
          A program opens a batch, submits jobs with its batchId, and closes it. The batch counts its jobs by state, and when the last of
          them has ended, a job of your choice follows: one if all completed, another one if some failed.
        </EmptyState>
      )}
      {batches.length > 0 && (
        <Card flush>
          <List batches={batches} />
          <LoadMore
            shown={batches.length}
            one="batch"
            many="batches"
            hasMore={list.hasNextPage}
            loading={list.isFetchingNextPage}
            onMore={() => void list.fetchNextPage()}
          />
        </Card>
      )}
    </div>
  );
}

function List({ batches }: { batches: BatchSummary[] }) {
  const owners = batches.some((batch) => batch.ownerId !== batches[0]?.ownerId);
  return (
    <Table caption="Batches">
      <thead>
        <tr>
          <th scope="col">Batch</th>
          {owners && <th scope="col">Owner</th>}
          <th scope="col">State</th>
          <th scope="col">Progress</th>
          <th scope="col">Created</th>
          <th scope="col">Ended</th>
        </tr>
      </thead>
      <tbody>
        {batches.map((batch) => (
          <tr key={batch.batchId}>
            <td>
              <Link href={paths.batch(batch.batchId)} {...(batch.name === null ? { className: 'mono' } : {})}>
                {nameOf(batch)}
              </Link>
            </td>
            {owners && <td>{batch.ownerId ?? '–'}</td>}
            <td>
              <State of={batch} />
            </td>
            <td>
              <Progress of={batch} />
            </td>
            <td>
              <RelativeTime at={batch.createdAt} />
            </td>
            <td>
              <RelativeTime at={batch.finishedAt} />
            </td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}
