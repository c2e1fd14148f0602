import { useRouter } from '@tanstack/react-router';
import { useState } from 'react';
import { useMay } from '../../api/me';
import { paths } from '../../app/paths';
import { relative } from '../../format/time';
import { Button } from '../../ui/Button';
import { Dialog } from '../../ui/Dialog';
import { useShortcuts } from '../../ui/shortcuts';
import { toast } from '../../ui/toasts';
import { allowed, changeable, losesWork, useCommand, type Command } from './commands';
import { ChangeDialog } from './ChangeDialog';
import type { Job } from './queries';
import { RescheduleDialog } from './RescheduleDialog';
import { RunAgainDialog } from './RunAgainDialog';

type Open = 'cancel' | 'change' | 'delete' | 'reschedule' | 'again' | null;

/** JobActions shows the commands that the job's state and the user's role allow. onDeleting is called when a delete begins or fails. */
export function JobActions({ job, onDeleting }: { job: Job; onDeleting: (deleting: boolean) => void }) {
  const may = useMay();
  const router = useRouter();
  const [open, setOpen] = useState<Open>(null);
  const command = useCommand(job, (done) => {
    setOpen(null);
    if (done.kind === 'delete') {
      toast(`The job ${job.jobId} is being deleted.`);
      router.history.push(paths.jobs());
    } else {
      say(done);
    }
  });

  function say(done: Command) {
    switch (done.kind) {
      case 'cancel':
        if (losesWork(job.status)) {
          toast('The worker was asked to stop the job.');
        } else {
          toast('The job is cancelled. A retry runs it at once.', { action: { label: 'Retry', run: () => command.mutate({ kind: 'retry' }) } });
        }
        break;
      case 'retry':
        toast('The job runs again, with all its retries.', { action: { label: 'Undo', run: () => command.mutate({ kind: 'cancel' }) } });
        break;
      case 'reschedule': {
        const before = job.nextRunAt;
        toast(`It runs ${relative(done.runAt, new Date())} at the earliest.`, {
          ...(before && { action: { label: 'Undo', run: () => command.mutate({ kind: 'reschedule', runAt: before }) } }),
        });
        break;
      }
    }
  }

  const operate = may('operate');
  const can = (kind: Command['kind']) => operate && allowed(kind, job.status) && !(kind === 'cancel' && job.cancelRequestedAt);
  const cancel = () => (losesWork(job.status) ? setOpen('cancel') : command.mutate({ kind: 'cancel' }));
  const remove = () => {
    onDeleting(true);
    command.mutate({ kind: 'delete' }, { onError: () => onDeleting(false) });
  };
  const busy = command.isPending;

  useShortcuts([
    ...(can('retry') ? [{ keys: 'r', does: 'Retry this job', run: () => command.mutate({ kind: 'retry' }) }] : []),
    ...(can('cancel') ? [{ keys: 'c', does: 'Cancel this job', run: cancel }] : []),
  ]);

  return (
    <>
      {can('retry') && (
        <Button variant="primary" icon="retry" busy={busy} onClick={() => command.mutate({ kind: 'retry' })}>
          Retry
        </Button>
      )}
      {can('cancel') && (
        <Button icon="cancel" busy={busy} onClick={cancel}>
          Cancel
        </Button>
      )}
      {can('reschedule') && (
        <Button icon="clock" onClick={() => setOpen('reschedule')}>
          Reschedule
        </Button>
      )}
      {operate && changeable(job) && (
        <Button icon="edit" onClick={() => setOpen('change')}>
          Change
        </Button>
      )}
      {may('submit') && may('read') && (
        <Button icon="play" onClick={() => setOpen('again')}>
          Run again
        </Button>
      )}
      {can('delete') && (
        <Button variant="danger" icon="trash" onClick={() => setOpen('delete')}>
          Delete
        </Button>
      )}
      {open === 'cancel' && (
        <Dialog
          title="Cancel a job that is being worked on?"
          onClose={() => setOpen(null)}
          actions={
            <>
              <Button onClick={() => setOpen(null)}>Let it run</Button>
              <Button variant="danger" busy={busy} onClick={() => command.mutate({ kind: 'cancel' })}>
                Cancel the job
              </Button>
            </>
          }
        >
          <p>Its attempt {job.attempt} is ended where it is, and what it did so far is not undone. A retry starts a new attempt.</p>
        </Dialog>
      )}
      {open === 'delete' && (
        <Dialog
          title="Delete this job for good?"
          onClose={() => setOpen(null)}
          actions={
            <>
              <Button onClick={() => setOpen(null)}>Keep it</Button>
              <Button variant="danger" busy={busy} onClick={remove}>
                Delete the job
              </Button>
            </>
          }
        >
          <p>The job, its payload, output and log are gone after that, and its idempotency key is free. This cannot be undone.</p>
        </Dialog>
      )}
      {open === 'reschedule' && (
        <RescheduleDialog job={job} busy={busy} onClose={() => setOpen(null)} onChoose={(runAt) => command.mutate({ kind: 'reschedule', runAt })} />
      )}
      {open === 'change' && <ChangeDialog job={job} onClose={() => setOpen(null)} />}
      {open === 'again' && <RunAgainDialog job={job} onClose={() => setOpen(null)} />}
    </>
  );
}
