import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { answer, api } from '../../api/client';
import { Link } from '../../app/Link';
import { paths } from '../../app/paths';
import { randomKey } from '../../format/key';
import { count, plural } from '../../format/number';
import { fromLocalInput, inputZone, toLocalInput } from '../../format/time';
import { Button } from '../../ui/Button';
import { Dialog } from '../../ui/Dialog';
import { ErrorBox } from '../../ui/ErrorBox';
import { Field } from '../../ui/Field';
import { countMatching, infoOf, narrowed, startOperation, targetOf, type BulkCommand, type Counted, type Target } from './bulk';
import { OperationProgress } from './OperationProgress';

interface Props {
  command: BulkCommand;
  target: Target;
  onClose: (done: boolean) => void;
}

/** BulkDialog shows how many jobs a command would reach, sends it, and shows its result. */
export function BulkDialog({ command, target, onClose }: Props) {
  const info = infoOf(command);
  const [key] = useState(randomKey);
  const [opened] = useState(() => new Date());
  const [sofar, setSofar] = useState<Counted>();
  const [runAt, setRunAt] = useState(() => toLocalInput(new Date(opened.getTime() + 3_600_000)));
  const filters = 'filters' in target ? narrowed(target.filters, command) : null;
  const filter = filters && targetOf(filters, opened);
  const counted = useQuery({
    queryKey: ['bulk-count', filter],
    queryFn: ({ signal }) => (filter ? countMatching(filter, signal, setSofar) : { n: 0, more: false }),
    enabled: 'filters' in target,
    gcTime: 0,
  });
  const start = useMutation({
    mutationFn: () => {
      const at = fromLocalInput(runAt);
      const when = command === 'reschedule' && at !== null ? { runAt: at } : null;
      return startOperation(command, 'jobIds' in target ? { jobIds: target.jobIds } : { filter: filter ?? {} }, when, key);
    },
  });
  const operation = useQuery({
    queryKey: ['operation', start.data?.operationId],
    queryFn: ({ signal }) =>
      answer(api.GET('/api/operations/{operationId}', { params: { path: { operationId: start.data?.operationId ?? '' } }, signal })),
    enabled: start.data !== undefined,
    refetchInterval: ({ state }) => (state.data?.finishedAt ? false : 700),
  });

  const client = useQueryClient();
  const over = operation.data?.finishedAt != null;
  useEffect(() => {
    if (over) {
      void client.invalidateQueries({ predicate: ({ queryKey: [of, part] }) => of === 'dead' || (of === 'jobs' && part === 'head') });
    }
  }, [over, client]);

  const total: Counted | undefined = 'jobIds' in target ? { n: target.jobIds.length, more: false } : counted.data;
  const words = total ?? sofar;
  const nothing = total?.n === 0;
  const badTime = command === 'reschedule' && fromLocalInput(runAt) === null;

  if (start.data) {
    const now = operation.data ?? start.data;
    return (
      <Dialog
        title={`${info.label}: ${now.finishedAt ? 'done' : 'under way'}`}
        onClose={() => onClose(true)}
        actions={
          <>
            <Link href={paths.operation(now.operationId)}>The operation</Link>
            <Button onClick={() => onClose(true)}>Close</Button>
          </>
        }
      >
        <OperationProgress operation={now} total={total} />
      </Dialog>
    );
  }
  return (
    <Dialog
      title={`${info.label} ${words ? sizeOf(words) : '…'}?`}
      onClose={() => onClose(false)}
      actions={
        <>
          <Button onClick={() => onClose(false)}>Leave them as they are</Button>
          <Button
            variant={command === 'delete' ? 'danger' : 'primary'}
            busy={start.isPending}
            disabled={total === undefined || nothing || badTime}
            onClick={() => start.mutate()}
          >
            {info.label} {words ? sizeOf(words) : ''}
          </Button>
        </>
      }
    >
      <p>{info.does}</p>
      {nothing && <p>No job that matches is in a state that allows it: {info.to.join(', ')}.</p>}
      {!total && !counted.isError && <p className="muted">Counting… {sofar && `${count(sofar.n)} so far`}</p>}
      <p className="small muted">Jobs whose state does not allow it at that moment are skipped, and listed afterwards.</p>
      {command === 'reschedule' && (
        <Field label="New time" hint={inputZone()} error={badTime ? 'Enter a date and a time.' : undefined}>
          {(props) => (
            <input {...props} className="input" type="datetime-local" step="1" value={runAt} onChange={(event) => setRunAt(event.target.value)} />
          )}
        </Field>
      )}
      {counted.isError && <ErrorBox error={counted.error} title="They cannot be counted" onRetry={() => void counted.refetch()} />}
      {start.isError && <ErrorBox error={start.error} />}
    </Dialog>
  );
}

function sizeOf({ n, more }: Counted): string {
  return more ? `more than ${count(n)} jobs` : plural(n, 'job');
}
