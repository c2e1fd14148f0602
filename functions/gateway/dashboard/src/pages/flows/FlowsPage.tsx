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
import { Progress, State } from '../batches/parts';
import type { FlowSummary } from '../batches/queries';

export default function FlowsPage() {
  const polling = usePolling(5000);
  const list = useInfiniteQuery({
    queryKey: ['flows'],
    queryFn: ({ pageParam }) =>
      answer(api.GET('/api/flows', { params: { query: { limit: 50, ...(pageParam ? { cursor: pageParam } : {}) } } })),
    initialPageParam: '',
    getNextPageParam: (page) => page.nextCursor,
    refetchInterval: polling,
  });
  const flows = list.data?.pages.flatMap((page) => page.flows) ?? [];
  return (
    <div className="stack">
      <PageHeader title="Flows" lead="Jobs that wait for each other and use each other's outputs." />
      {list.isError && <ErrorBox error={list.error} onRetry={() => void list.refetch()} />}
      {list.isPending && <Skeleton lines={6} />}
      {list.isSuccess && flows.length === 0 && (
        <EmptyState icon="flows" title="No flow yet">
          A program submits jobs that name each other in one request. Each job waits for those that it names, and can use their outputs.
          Here you see which of them run, and what they wait for.
        </EmptyState>
      )}
      {flows.length > 0 && (
        <Card flush>
          <List flows={flows} />
          <LoadMore
            shown={flows.length}
            one="flow"
            many="flows"
            hasMore={list.hasNextPage}
            loading={list.isFetchingNextPage}
            onMore={() => void list.fetchNextPage()}
          />
        </Card>
      )}
    </div>
  );
}

function List({ flows }: { flows: FlowSummary[] }) {
  const owners = flows.some((flow) => flow.ownerId !== flows[0]?.ownerId);
  return (
    <Table caption="Flows">
      <thead>
        <tr>
          <th scope="col">Flow</th>
          {owners && <th scope="col">Owner</th>}
          <th scope="col">State</th>
          <th scope="col">Progress</th>
          <th scope="col">Created</th>
          <th scope="col">Ended</th>
        </tr>
      </thead>
      <tbody>
        {flows.map((flow) => (
          <tr key={flow.flowId}>
            <td>
              <Link href={paths.flow(flow.flowId)} {...(flow.name === null ? { className: 'mono' } : {})}>
                {flow.name ?? flow.flowId}
              </Link>
            </td>
            {owners && <td>{flow.ownerId ?? '–'}</td>}
            <td>
              <State of={flow} />
            </td>
            <td>
              <Progress of={flow} />
            </td>
            <td>
              <RelativeTime at={flow.createdAt} />
            </td>
            <td>
              <RelativeTime at={flow.finishedAt} />
            </td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}
