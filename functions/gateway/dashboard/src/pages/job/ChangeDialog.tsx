import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { answer, api, type Schemas } from '../../api/client';
import { stringify } from '../../api/json';
import { Button } from '../../ui/Button';
import { Dialog } from '../../ui/Dialog';
import { ErrorBox } from '../../ui/ErrorBox';
import { toast } from '../../ui/toasts';
import { parseChanges } from './changes';
import { PatchField } from './PatchField';
import type { Job } from './queries';

/** ChangeDialog changes a job that has not started. */
export function ChangeDialog({ job, onClose }: { job: Job; onClose: () => void }) {
  const client = useQueryClient();
  const [text, setText] = useState(() => stringify({ priority: job.priority, queue: job.queue, tags: job.tags, payload: job.payload }, 2));
  const changes = parseChanges(text);
  const change = useMutation({
    mutationFn: (body: Schemas['JobChange']) =>
      answer(
        api.PATCH('/api/jobs/{jobId}', {
          params: { path: { jobId: job.jobId } },
          headers: { 'Content-Type': 'application/merge-patch+json' },
          body,
        }),
      ),
    onSuccess: () => {
      toast('The change is accepted. The job shows it once the scheduler has applied it.');
      void client.invalidateQueries({ queryKey: ['job', job.jobId] });
      onClose();
    },
  });

  return (
    <Dialog
      title="Change the job before it starts"
      onClose={onClose}
      wide
      actions={
        <Button
          variant="primary"
          icon="edit"
          busy={change.isPending}
          disabled={!changes.ok || Object.keys(changes.value).length === 0}
          onClick={() => changes.ok && change.mutate(changes.value as Schemas['JobChange'])}
        >
          Change the job
        </Button>
      }
    >
      <p>
        These members can change: payload, priority, queue, tags, runAt, delayMs, expiresAt, timeoutMs, maxRetryCount and retryPolicy. Those left
        out stay; a job that starts first stays as it was.
      </p>
      <PatchField text={text} changes={changes} example={'{"priority": 9, "expiresAt": null}'} onChange={setText} />
      {change.isError && <ErrorBox error={change.error} title="It cannot be changed like this" />}
    </Dialog>
  );
}
