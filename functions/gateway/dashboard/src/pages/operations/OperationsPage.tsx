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
import { Abort, Progress, State } from './parts';
import { type Operation, target } from './words';

export default function OperationsPage() {
  const polling = usePolling(3000);
  const list = useInfiniteQuery({
    queryKey: ['operations'],
    queryFn: ({ pageParam }) =>
      answer(api.GET('/api/operations', { params: { query: { limit: 50, ...(pageParam ? { cursor: pageParam } : {}) } } })),
    initialPageParam: '',
    getNextPageParam: (page) => page.nextCursor,
    refetchInterval: polling,
  });
  const operations = list.data?.pages.flatMap((page) => page.operations) ?? [];
  return (
    <div className="stack">
      <PageHeader title="Operations" lead="Commands for many jobs: their progress, and the jobs that they skipped." />
      {list.isError && <ErrorBox error={list.error} onRetry={() => void list.refetch()} />}
      {list.isPending && <Skeleton lines={6} />}
      {list.isSuccess && operations.length === 0 && (
        <EmptyState icon="operations" title="No operation yet">
          An operation cancels, retries, reschedules or deletes many jobs at once: those that you select in a list, or everything that
          matches a filter. It goes on in the background, and this page shows how far it is.
        </EmptyState>
      )}
      {operations.length > 0 && (
        <Card flush>
          <List operations={operations} />
          <LoadMore
            shown={operations.length}
            one="operation"
            hasMore={list.hasNextPage}
            loading={list.isFetchingNextPage}
            onMore={() => void list.fetchNextPage()}
          />
        </Card>
      )}
    </div>
  );
}

function List({ operations }: { operations: Operation[] }) {
  return (
    <Table caption="Operations" cards>
      <thead>
        <tr>
          <th scope="col">Command</th>
          <th scope="col">To</th>
          <th scope="col">State</th>
          <th scope="col">Progress</th>
          <th scope="col">Began</th>
          <th scope="col">Actions</th>
        </tr>
      </thead>
      <tbody>
        {operations.map((operation) => (
          <tr key={operation.operationId}>
            <td className="cell-title">
              <Link href={paths.operation(operation.operationId)}>{operation.command}</Link>
            </td>
            <td className="cell-whole">{target(operation)}</td>
            <td>
              <State operation={operation} />
            </td>
            <td className="cell-whole">
              <Progress operation={operation} />
            </td>
            <td>
              <RelativeTime at={operation.createdAt} /> <span className="muted">by {operation.by}</span>
            </td>
            <td>
              <Abort operation={operation} />
            </td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}
