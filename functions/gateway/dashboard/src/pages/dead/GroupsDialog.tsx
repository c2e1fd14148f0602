import { useMutation, useQueries, useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { answer, api, type Schemas } from '../../api/client';
import { Link } from '../../app/Link';
import { paths } from '../../app/paths';
import { randomKey } from '../../format/key';
import { plural } from '../../format/number';
import { Button } from '../../ui/Button';
import { Dialog } from '../../ui/Dialog';
import { ErrorBox } from '../../ui/ErrorBox';
import { startOperation } from '../jobs/bulk';
import { OperationProgress } from '../jobs/OperationProgress';
import type { DeadFilters } from './filters';
import { keyOf, targetOf, type Group } from './groups';
import { deadGroupsQuery } from './queries';

export type GroupCommand = 'retry' | 'delete';

const WORDS = {
  retry: { label: 'Redrive', does: 'They run again, with all their retries.' },
  delete: { label: 'Delete', does: 'They and their logs are gone for good. This cannot be undone.' },
} as const;

interface Props {
  command: GroupCommand;
  groups: readonly Group[]; // as they were when the user chose them
  filters: DeadFilters;
  onClose: (done: boolean) => void;
}

/** GroupsDialog counts the jobs of groups anew, then has one operation for each group redrive or delete them. */
export function GroupsDialog({ command, groups, filters, onClose }: Props) {
  const { label, does } = WORDS[command];
  const [keys] = useState(() => new Map(groups.map((group) => [keyOf(group), randomKey()])));
  const [opened] = useState(() => new Date());
  const [started, setStarted] = useState<Schemas['Operation'][]>([]);
  const counted = useQuery({ ...deadGroupsQuery(filters, 'count'), staleTime: Infinity, gcTime: 0 });
  const now = counted.data?.groups.filter((group) => keys.has(keyOf(group)));
  const total = now?.reduce((sum, group) => sum + group.jobs, 0);
  const start = useMutation({
    mutationFn: async () => {
      for (const group of now?.slice(started.length) ?? []) { // those that an earlier try did not start
        const operation = await startOperation(command, { filter: targetOf(group, filters.ownerId, opened) }, null, keys.get(keyOf(group)) ?? '');
        setStarted((before) => [...before, operation]);
      }
    },
  });
  const operations = useQueries({
    queries: started.map(({ operationId }) => ({
      queryKey: ['operation', operationId],
      queryFn: ({ signal }: { signal: AbortSignal }) => answer(api.GET('/api/operations/{operationId}', { params: { path: { operationId } }, signal })),
      refetchInterval: ({ state }: { state: { data?: Schemas['Operation'] | undefined } }) => (state.data?.finishedAt ? (false as const) : 700),
    })),
  });
  const known = started.map((operation, i) => operations[i]?.data ?? operation);
  const over = start.isSuccess && known.every((operation) => operation.finishedAt !== null);
  const client = useQueryClient();
  useEffect(() => {
    if (over) {
      void client.invalidateQueries({ queryKey: ['dead'], predicate: ({ queryKey }) => queryKey[1] !== 'count' });
    }
  }, [over, client]);

  if (known.length > 0) {
    const only = known.length === 1 ? known[0] : undefined;
    return (
      <Dialog
        title={`${label}: ${over ? 'done' : 'under way'}`}
        onClose={() => onClose(true)}
        actions={
          <>
            {only ? <Link href={paths.operation(only.operationId)}>The operation</Link> : <Link href={paths.operations()}>The operations</Link>}
            <Button onClick={() => onClose(true)}>Close</Button>
          </>
        }
      >
        <OperationProgress operation={together(known, over)} total={total === undefined ? undefined : { n: total, more: false }} />
        {start.isError && <ErrorBox error={start.error} title={`${known.length} of ${now?.length ?? 0} groups were started`} onRetry={() => start.mutate()} />}
      </Dialog>
    );
  }
  const size = total === undefined || now === undefined ? '…' : plural(total, 'job');
  return (
    <Dialog
      title={`${label} ${size}${now && now.length > 1 ? ` in ${now.length} groups` : ''}?`}
      onClose={() => onClose(false)}
      actions={
        <>
          <Button onClick={() => onClose(false)}>Leave them as they are</Button>
          <Button variant={command === 'delete' ? 'danger' : 'primary'} busy={start.isPending} disabled={!total} onClick={() => start.mutate()}>
            {label} {size}
          </Button>
        </>
      }
    >
      <p>{does}</p>
      {now && (
        <ul className="dead-chosen">
          {now.map((group) => (
            <li key={keyOf(group)}>
              <span>
                {group.jobType} {group.errorCode === null ? 'without an error code' : <code>{group.errorCode}</code>}
              </span>
              <span className="tabular">{plural(group.jobs, 'job')}</span>
            </li>
          ))}
        </ul>
      )}
      {total === 0 && <p>None of these jobs is FAILED any more.</p>}
      <p className="small muted">Jobs whose state does not allow it at that moment are skipped, and listed afterwards.</p>
      {counted.isError && <ErrorBox error={counted.error} title="They cannot be counted" onRetry={() => void counted.refetch()} />}
      {start.isError && <ErrorBox error={start.error} />}
    </Dialog>
  );
}

/** together adds up the progress of operations, for a single display. */
function together(operations: readonly Schemas['Operation'][], over: boolean): Pick<Schemas['Operation'], 'status' | 'progress' | 'reasons' | 'finishedAt'> {
  const progress = { matched: 0, asked: 0, applied: 0, refused: 0, skipped: 0, walked: over };
  const sums = ['matched', 'asked', 'applied', 'refused', 'skipped'] as const;
  const reasons = new Map<string, number>();
  for (const operation of operations) {
    for (const name of sums) {
      progress[name] += operation.progress[name];
    }
    operation.reasons.forEach(({ reason, jobs }) => reasons.set(reason, (reasons.get(reason) ?? 0) + jobs));
  }
  return {
    status: over ? 'COMPLETED' : 'RUNNING',
    progress,
    reasons: [...reasons].map(([reason, jobs]) => ({ reason, jobs })),
    finishedAt: over ? (operations.at(-1)?.finishedAt ?? null) : null,
  };
}
