import { useInfiniteQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { answer, api } from '../../api/client';
import { PageHeader } from '../../app/PageHeader';
import { usePolling } from '../../live/live';
import { Card } from '../../ui/Card';
import { EmptyState } from '../../ui/EmptyState';
import { ErrorBox } from '../../ui/ErrorBox';
import { LoadMore } from '../../ui/LoadMore';
import { Skeleton } from '../../ui/Skeleton';
import { BulkDialog } from '../jobs/BulkDialog';
import { readFilters, type Filters } from '../jobs/filters';
import { DeadGroup } from './DeadGroup';
import { filterOf, groupsOf } from './groups';
import './Dead.css';

const PAGE = 200;

/** DeadPage shows which jobs failed for good, for which reasons, and lets the user retry them. */
export default function DeadPage() {
  const [asked, setAsked] = useState<{ command: 'retry' | 'delete'; filters: Filters }>(); // kept here, because its group may be gone before the command ends
  const list = useInfiniteQuery({
    queryKey: ['dead'],
    queryFn: ({ pageParam, signal }) =>
      answer(api.GET('/api/jobs/dead', { params: { query: { limit: PAGE, ...(pageParam !== null && { cursor: pageParam }) } }, signal })),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.nextCursor,
    refetchInterval: usePolling(10_000),
  });
  const jobs = useMemo(() => list.data?.pages.flatMap((page) => page.jobs) ?? [], [list.data]);
  const groups = useMemo(() => groupsOf(jobs), [jobs]);

  return (
    <>
      <PageHeader title="Dead letters" lead="Jobs whose last attempt failed, by their type and error" />
      {list.isError && <ErrorBox error={list.error} title="The dead letters cannot be listed" onRetry={() => void list.refetch()} />}
      {list.isPending && <Skeleton lines={8} />}
      {list.isSuccess && groups.length === 0 && (
        <Card>
          <EmptyState icon="check" title="No dead letters">
            A job that fails after all its retries, or with an error that a retry cannot help, ends here. It stays until it is redriven or
            deleted.
          </EmptyState>
        </Card>
      )}
      {groups.map((group) => (
        <DeadGroup
          key={`${group.jobType} ${group.errorCode ?? ''}`}
          group={group}
          complete={!list.hasNextPage}
          onCommand={(command) => setAsked({ command, filters: readFilters(filterOf(group)) })}
        />
      ))}
      {groups.length > 0 && (
        <Card flush>
          <LoadMore
            shown={jobs.length}
            one="dead letter"
            hasMore={list.hasNextPage}
            loading={list.isFetchingNextPage}
            onMore={() => void list.fetchNextPage()}
          />
        </Card>
      )}
      {asked && <BulkDialog command={asked.command} target={{ filters: asked.filters }} onClose={() => setAsked(undefined)} />}
    </>
  );
}
