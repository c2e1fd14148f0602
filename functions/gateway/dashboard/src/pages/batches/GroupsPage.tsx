import { useInfiniteQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Link } from '../../app/Link';
import { PageHeader } from '../../app/PageHeader';
import { usePolling } from '../../live/live';
import { Card } from '../../ui/Card';
import { EmptyState } from '../../ui/EmptyState';
import { ErrorBox } from '../../ui/ErrorBox';
import { LoadMore } from '../../ui/LoadMore';
import { RelativeTime } from '../../ui/RelativeTime';
import { Skeleton } from '../../ui/Skeleton';
import { Table } from '../../ui/Table';
import { type Group, Progress, State } from './parts';

interface Listed extends Group {
  id: string;
}

interface Kind {
  one: 'batch' | 'flow';
  many: 'batches' | 'flows';
  title: string;
  href: (id: string) => string;
}

interface Props extends Kind {
  lead: string;
  read: (query: { limit: number; cursor?: string }) => Promise<{ groups: Listed[]; nextCursor: string | null }>;
  children: ReactNode; // shown if there is none yet
}

/** GroupsPage lists batches or flows. */
export function GroupsPage({ lead, read, children, ...kind }: Props) {
  const { one, many, title } = kind;
  const polling = usePolling(5000);
  const list = useInfiniteQuery({
    queryKey: [many],
    queryFn: ({ pageParam }) => read({ limit: 50, ...(pageParam ? { cursor: pageParam } : {}) }),
    initialPageParam: '',
    getNextPageParam: (page) => page.nextCursor,
    refetchInterval: polling,
  });
  const groups = list.data?.pages.flatMap((page) => page.groups) ?? [];
  return (
    <div className="stack">
      <PageHeader title={title} lead={lead} />
      {list.isError && <ErrorBox error={list.error} onRetry={() => void list.refetch()} />}
      {list.isPending && <Skeleton lines={6} />}
      {list.isSuccess && groups.length === 0 && (
        <EmptyState icon={many} title={`No ${one} yet`}>
          {children}
        </EmptyState>
      )}
      {groups.length > 0 && (
        <Card flush>
          <List {...kind} groups={groups} />
          <LoadMore
            shown={groups.length}
            one={one}
            many={many}
            hasMore={list.hasNextPage}
            loading={list.isFetchingNextPage}
            onMore={() => void list.fetchNextPage()}
          />
        </Card>
      )}
    </div>
  );
}

function List({ groups, one, title, href }: Kind & { groups: Listed[] }) {
  const owners = groups.some((group) => group.ownerId !== groups[0]?.ownerId);
  return (
    <Table caption={title} cards>
      <thead>
        <tr>
          <th scope="col">{one === 'flow' ? 'Flow' : 'Batch'}</th>
          {owners && <th scope="col">Owner</th>}
          <th scope="col">State</th>
          <th scope="col">Progress</th>
          <th scope="col">Created</th>
          <th scope="col">Ended</th>
        </tr>
      </thead>
      <tbody>
        {groups.map((group) => (
          <tr key={group.id}>
            <td className="cell-title">
              <Link href={href(group.id)} {...(group.name === null ? { className: 'mono' } : {})}>
                {group.name ?? group.id}
              </Link>
            </td>
            {owners && <td data-label="Owner">{group.ownerId ?? '–'}</td>}
            <td>
              <State of={group} />
            </td>
            <td className="cell-whole">
              <Progress of={group} />
            </td>
            <td data-label="Created">
              <RelativeTime at={group.createdAt} />
            </td>
            <td data-label="Ended" className={group.finishedAt === null ? 'cell-empty' : ''}>
              <RelativeTime at={group.finishedAt} />
            </td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}
