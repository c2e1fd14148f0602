import { useInfiniteQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { answer, api } from '../../api/client';
import { PageHeader } from '../../app/PageHeader';
import { bytes } from '../../format/number';
import { usePolling } from '../../live/live';
import { Badge } from '../../ui/Badge';
import { Card } from '../../ui/Card';
import { EmptyState } from '../../ui/EmptyState';
import { ErrorBox } from '../../ui/ErrorBox';
import { LoadMore } from '../../ui/LoadMore';
import { RelativeTime } from '../../ui/RelativeTime';
import { Skeleton } from '../../ui/Skeleton';
import { Table } from '../../ui/Table';
import { RecordDialog } from './RecordDialog';
import './Rejected.css';

/** RejectedPage shows the records that a function could not use. */
export default function RejectedPage() {
  const [shown, setShown] = useState<string>();
  const list = useInfiniteQuery({
    queryKey: ['rejected'],
    queryFn: ({ pageParam, signal }) => answer(api.GET('/api/rejected', { params: { query: pageParam === null ? {} : { cursor: pageParam } }, signal })),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.nextCursor,
    refetchInterval: usePolling(15_000),
  });
  const records = list.data?.pages.flatMap((page) => page.rejected) ?? [];

  return (
    <>
      <PageHeader title="Rejected records" lead="Records that a function could not process and skipped, so that later records are not held up" />
      {list.isError && <ErrorBox error={list.error} title="The records cannot be listed" onRetry={() => void list.refetch()} />}
      {list.isPending && <Skeleton lines={6} />}
      {list.isSuccess && records.length === 0 && (
        <Card>
          <EmptyState icon="check" title="No record was rejected">
            A function rejects a record that it cannot read, that has no valid signature, or that asks for something impossible. It is kept here
            with its topic, offset and reason. Redrive it when the cause is fixed.
          </EmptyState>
        </Card>
      )}
      {records.length > 0 && (
        <Card flush>
          <Table caption="Rejected records, the latest first" cards>
            <thead>
              <tr>
                <th scope="col">Rejected</th>
                <th scope="col">By</th>
                <th scope="col">Topic</th>
                <th scope="col" className="number">
                  Partition
                </th>
                <th scope="col" className="number">
                  Offset
                </th>
                <th scope="col">Reason</th>
                <th scope="col" className="number">
                  Size
                </th>
                <th scope="col">State</th>
              </tr>
            </thead>
            <tbody>
              {records.map((record) => (
                <tr key={record.id}>
                  <td>
                    <button type="button" className="link-button" onClick={() => setShown(record.id)}>
                      <RelativeTime at={record.rejectedAt} />
                    </button>
                  </td>
                  <td data-label="By">{record.function}</td>
                  <td data-label="Topic">{record.topic}</td>
                  <td data-label="Partition" className="number">{record.partition ?? 'HTTP'}</td>
                  <td data-label="Offset" className="number">{record.offset ?? '–'}</td>
                  <td className="rejected-reason cell-whole">{record.reason}</td>
                  <td data-label="Size" className="number">{bytes(record.bytes)}</td>
                  <td>
                    {record.redrivenAt ? <Badge tone="good">redriven</Badge> : record.redriveRefusal ? <Badge>cannot be redriven</Badge> : <Badge tone="warn">kept</Badge>}
                  </td>
                </tr>
              ))}
            </tbody>
          </Table>
          <LoadMore
            shown={records.length}
            one="record"
            hasMore={list.hasNextPage}
            loading={list.isFetchingNextPage}
            onMore={() => void list.fetchNextPage()}
          />
        </Card>
      )}
      {shown && <RecordDialog id={shown} onClose={() => setShown(undefined)} />}
    </>
  );
}
