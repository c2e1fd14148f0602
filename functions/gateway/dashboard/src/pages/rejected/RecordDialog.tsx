import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { answer, api, type Schemas } from '../../api/client';
import { useAction } from '../../api/useAction';
import { instant } from '../../format/time';
import { useTimes } from '../../format/times';
import { Button } from '../../ui/Button';
import { Card } from '../../ui/Card';
import { Code } from '../../ui/Code';
import { Dialog } from '../../ui/Dialog';
import { ErrorBox } from '../../ui/ErrorBox';
import { Fact, Facts } from '../../ui/Facts';
import { Fold } from '../../ui/Fold';
import { Skeleton } from '../../ui/Skeleton';
import { pretty } from './pretty';

/** RecordDialog shows a rejected record, redrives it, or discards it. */
export function RecordDialog({ id, onClose }: { id: string; onClose: () => void }) {
  const [sure, setSure] = useState(false);
  const params = { path: { rejectedId: id } };
  const query = useQuery({
    queryKey: ['rejected-record', id],
    queryFn: ({ signal }) => answer(api.GET('/api/rejected/{rejectedId}', { params, signal })),
  });
  const redrive = useAction({
    run: () => answer(api.POST('/api/rejected/{rejectedId}/redrive', { params })),
    done: (record) => `The record is on ${record.topic} again, exactly as it was.`,
    changes: ['rejected', 'rejected-record'],
  });
  const discard = useAction({
    run: () => answer(api.DELETE('/api/rejected/{rejectedId}', { params })),
    done: (record) => `The record of ${record.topic} is discarded.`,
    changes: ['rejected'],
  });
  const record = query.data;

  return (
    <Dialog
      title="Rejected record"
      wide
      onClose={onClose}
      actions={
        record && (
          <>
            {sure ? (
              <Button variant="danger" icon="trash" busy={discard.isPending} onClick={() => discard.mutate(undefined, { onSuccess: onClose })}>
                Discard it for good
              </Button>
            ) : (
              <Button variant="danger" icon="trash" onClick={() => setSure(true)}>
                Discard…
              </Button>
            )}
            {!record.redrivenAt && (
              <Button
                variant="primary"
                icon="retry"
                disabled={record.redriveRefusal !== null}
                busy={redrive.isPending}
                onClick={() => redrive.mutate(undefined, { onSuccess: onClose })}
              >
                Redrive
              </Button>
            )}
          </>
        )
      }
    >
      {query.isPending && <Skeleton />}
      {query.isError && <ErrorBox error={query.error} onRetry={() => void query.refetch()} />}
      {record && <Record record={record} />}
    </Dialog>
  );
}

function Record({ record }: { record: Schemas['WholeRejectedRecord'] }) {
  useTimes();
  return (
    <>
      <p>
        <strong>{record.reason}</strong>
      </p>
      {record.redriveRefusal && <p>It cannot be redriven: {record.redriveRefusal}.</p>}
      <Facts>
        <Fact name="Rejected by">{record.function}</Fact>
        <Fact name="Topic">{record.topic}</Fact>
        <Fact name="Partition and offset">{record.partition === null ? 'it came over HTTP' : `${record.partition} / ${record.offset}`}</Fact>
        <Fact name="Rejected">{instant(record.rejectedAt)}</Fact>
        {record.recordedAt && <Fact name="Written">{instant(record.recordedAt)}</Fact>}
        {record.redrivenAt && (
          <Fact name="Redriven">
            {instant(record.redrivenAt)}, by {record.redrivenBy}
          </Fact>
        )}
      </Facts>
      <Card flush>
        <Fold title="Headers" note={String(record.headers.length)}>
          {() => <Code text={record.headers.map(({ name, value }) => `${name}: ${value?.data ?? ''}`).join('\n')} label="the headers" />}
        </Fold>
        <Fold title="Value" note={record.truncated ? 'cut, it was too large' : (record.value?.encoding ?? 'none')}>
          {() => <Code text={pretty(record.value)} label="the value" />}
        </Fold>
        {record.key && (
          <Fold title="Key" note={record.key.encoding}>
            {() => <Code text={record.key?.data ?? ''} label="the key" />}
          </Fold>
        )}
      </Card>
    </>
  );
}
