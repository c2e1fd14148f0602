import { useQuery } from '@tanstack/react-query';
import { useId, useState, type FormEvent } from 'react';
import { answer, api } from '../../api/client';
import { asApiError } from '../../api/error';
import { useMay } from '../../api/me';
import { Link } from '../../app/Link';
import { paths } from '../../app/paths';
import { count } from '../../format/number';
import { usePolling } from '../../live/live';
import { Badge } from '../../ui/Badge';
import { Button } from '../../ui/Button';
import { Card } from '../../ui/Card';
import { Dialog } from '../../ui/Dialog';
import { ErrorBox } from '../../ui/ErrorBox';
import { Field } from '../../ui/Field';
import '../../ui/form.css';
import { RelativeTime } from '../../ui/RelativeTime';
import { Table } from '../../ui/Table';
import { type Queue, type QueueWorkers, useCreateQueue, useRemoveQueue } from './queries';

/** QueuesCard lists the queues. An admin of the installation creates and removes them here. */
export function QueuesCard() {
  const may = useMay();
  const polling = usePolling(3000);
  const [open, setOpen] = useState<Queue | 'new'>();
  const list = useQuery({ queryKey: ['queues'], queryFn: () => answer(api.GET('/api/queues')), refetchInterval: polling });
  const create = may('installation') && (
    <Button small icon="new" onClick={() => setOpen('new')}>
      New queue
    </Button>
  );
  const close = () => setOpen(undefined);
  return (
    <>
      {list.isError && <ErrorBox error={list.error} onRetry={() => void list.refetch()} />}
      {list.data && (
        <Card title="Queues" aside={create} flush>
          <List queues={list.data.queues} onRemove={setOpen} />
        </Card>
      )}
      {open === 'new' && <Creation onClose={close} />}
      {open !== undefined && open !== 'new' && <Removal queue={open} onClose={close} />}
    </>
  );
}

function List({ queues, onRemove }: { queues: Queue[]; onRemove: (queue: Queue) => void }) {
  const may = useMay();
  return (
    <Table caption="All queues" cards>
      <thead>
        <tr>
          <th scope="col">Queue</th>
          <th scope="col">State</th>
          <th scope="col" className="number">
            Live workers
          </th>
          <th scope="col" className="number">
            Waiting
          </th>
          <th scope="col" className="number">
            Running
          </th>
          <th scope="col">Created</th>
          {may('installation') && <th scope="col">Actions</th>}
        </tr>
      </thead>
      <tbody>
        {queues.map((queue) => (
          <tr key={queue.queue}>
            <th scope="row">
              <Link href={paths.queue(queue.queue)}>{queue.queue}</Link>{' '}
              {queue.workers === 'pull' && <span className="muted">for pull workers</span>}
            </th>
            <td>
              <span className="row">
                {queue.state === 'REMOVING' && <Badge tone="warn">is being removed</Badge>}
                {queue.paused && <Badge tone="warn">paused</Badge>}
                {queue.state === 'ACTIVE' && !queue.paused && <Badge tone="good">takes jobs</Badge>}
              </span>
            </td>
            <td data-label="Live workers" className="number">{count(queue.liveWorkers)}</td>
            <td data-label="Waiting" className="number">{count(queue.waiting)}</td>
            <td data-label="Running" className="number">{count(queue.running)}</td>
            <td data-label="Created">
              {queue.createdAt === null ? (
                <span className="muted">by the setting QUEUES</span>
              ) : (
                <>
                  <RelativeTime at={queue.createdAt} /> <span className="muted">{queue.createdBy && `by ${queue.createdBy}`}</span>
                </>
              )}
            </td>
            {may('installation') && (
              <td className="cell-whole">
                {queue.origin === 'created' && queue.state === 'ACTIVE' && (
                  <Button small icon="trash" aria-label={`Remove the queue ${queue.queue}`} onClick={() => onRemove(queue)}>
                    Remove
                  </Button>
                )}
              </td>
            )}
          </tr>
        ))}
      </tbody>
    </Table>
  );
}

function Creation({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState('');
  const [workers, setWorkers] = useState<QueueWorkers>('runjob');
  const create = useCreateQueue();
  const formId = useId();
  const problem = create.error === null ? null : asApiError(create.error);
  const wrongName = problem?.details.find(({ path }) => path === 'queue')?.message;

  function submit(event: FormEvent) {
    event.preventDefault();
    create.mutate({ name: name.trim(), workers }, { onSuccess: onClose });
  }

  return (
    <Dialog
      title="New queue"
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Close without saving</Button>
          <Button type="submit" form={formId} variant="primary" busy={create.isPending} disabled={name.trim() === ''}>
            Create
          </Button>
        </>
      }
    >
      <form id={formId} className="stack" onSubmit={submit} noValidate>
        <Field label="Name" hint="Small letters, digits and hyphens." error={wrongName}>
          {(props) => <input {...props} className="input" value={name} onChange={(e) => setName(e.target.value)} />}
        </Field>
        <Field label="Served by">
          {(props) => (
            <select {...props} className="input" value={workers} onChange={(e) => setWorkers(e.target.value as QueueWorkers)}>
              <option value="runjob">workers of this installation</option>
              <option value="pull">pull workers</option>
            </select>
          )}
        </Field>
        {problem && wrongName === undefined && <ErrorBox error={problem} />}
      </form>
    </Dialog>
  );
}

function Removal({ queue, onClose }: { queue: Queue; onClose: () => void }) {
  const [drain, setDrain] = useState(false);
  const remove = useRemoveQueue();
  return (
    <Dialog
      title={`Remove the queue ${queue.queue}?`}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Keep it</Button>
          <Button
            variant="danger"
            busy={remove.isPending}
            onClick={() => remove.mutate({ name: queue.queue, drain }, { onSuccess: onClose })}
          >
            Remove it
          </Button>
        </>
      }
    >
      <div className="stack">
        <p>It takes no new jobs. When it is empty, its workers leave it, and its topic, its pause and its limits are deleted.</p>
        <label className="check">
          <input type="checkbox" checked={drain} onChange={(e) => setDrain(e.target.checked)} /> Run the jobs that are in it first
        </label>
        {remove.error !== null && <ErrorBox error={remove.error} />}
      </div>
    </Dialog>
  );
}
