import { useMutation } from '@tanstack/react-query';
import { useRouter } from '@tanstack/react-router';
import { useState } from 'react';
import { answer, api, type Schemas } from '../../api/client';
import { paths } from '../../app/paths';
import { randomKey } from '../../format/key';
import { Button } from '../../ui/Button';
import { Dialog } from '../../ui/Dialog';
import { ErrorBox } from '../../ui/ErrorBox';
import { toast } from '../../ui/toasts';
import { parseChanges } from './changes';
import { PatchField } from './PatchField';
import type { Job } from './queries';

/** RunAgainDialog runs the job again as a new job, unchanged or with changes. */
export function RunAgainDialog({ job, onClose }: { job: Job; onClose: () => void }) {
  const router = useRouter();
  const [text, setText] = useState('{}');
  const [key] = useState(randomKey);
  const changes = parseChanges(text);
  const run = useMutation({
    mutationFn: (body: Schemas['RunAgainRequest']) =>
      answer(
        api.POST('/api/jobs/{jobId}/run-again', {
          params: { path: { jobId: job.jobId }, header: { 'Idempotency-Key': key } },
          body,
        }),
      ),
    onSuccess: ({ jobId }) => {
      toast('It runs again as a new job, which is shown here.', {
        action: { label: 'Back to the old one', run: () => router.history.push(paths.job(job.jobId)) },
      });
      onClose();
      router.history.push(paths.job(jobId));
    },
  });

  return (
    <Dialog
      title="Run again as a new job"
      onClose={onClose}
      wide
      actions={
        <Button
          variant="primary"
          icon="play"
          busy={run.isPending}
          disabled={!changes.ok}
          onClick={() => changes.ok && run.mutate(changes.value as Schemas['RunAgainRequest'])}
        >
          {changes.ok && Object.keys(changes.value).length > 0 ? 'Run again with these changes' : 'Run again as it was'}
        </Button>
      }
    >
      <p>The new job asks for what this one asked for, and runs at once. The two are linked.</p>
      <PatchField text={text} changes={changes} example={'{"priority": 5, "tags": null, "payload": {"subject": "Hello"}}'} onChange={setText} />
      {run.isError && <ErrorBox error={run.error} title="It cannot run with these changes" />}
    </Dialog>
  );
}
