import { useMutation, useQueryClient } from '@tanstack/react-query';
import { answer, api } from '../../api/client';
import { advice, asApiError } from '../../api/error';
import { toast } from '../../ui/toasts';
import type { Status } from '../../ui/StatusBadge';
import type { Job } from './queries';

export type Command = { kind: 'cancel' } | { kind: 'retry' } | { kind: 'delete' } | { kind: 'reschedule'; runAt: string };

/** allowed returns whether a job in this state allows the command. */
export function allowed(kind: Command['kind'], status: Status): boolean {
  switch (kind) {
    case 'cancel':
      return !['COMPLETED', 'FAILED', 'CANCELLED'].includes(status);
    case 'retry':
      return status === 'FAILED' || status === 'CANCELLED';
    case 'reschedule':
      return status === 'SCHEDULED' || status === 'PENDING' || status === 'RETRYING';
    case 'delete':
      return ['COMPLETED', 'FAILED', 'CANCELLED'].includes(status);
  }
}

/** changeable returns whether the job can be changed: it waits, and has had no attempt. */
export function changeable({ status, attempt }: Pick<Job, 'status' | 'attempt'>): boolean {
  return (status === 'SCHEDULED' || status === 'PENDING') && attempt === 0;
}

/** losesWork returns whether a cancel would end work of a worker or an outside system, which cannot be continued; the user must confirm it. */
export function losesWork(status: Status): boolean {
  return status === 'QUEUED' || status === 'RUNNING' || status === 'WAITING';
}

export function reportProblem(thrown: unknown) {
  const error = asApiError(thrown);
  toast(`${error.message} (${error.code})`, { tone: 'problem', detail: `${advice(error)}${error.traceId ? ` Trace id ${error.traceId}.` : ''}` });
}

function send(jobId: string, command: Command) {
  const params = { path: { jobId } };
  switch (command.kind) {
    case 'cancel':
      return answer(api.POST('/api/jobs/{jobId}/cancel', { params }));
    case 'retry':
      return answer(api.POST('/api/jobs/{jobId}/retry', { params }));
    case 'delete':
      return answer(api.DELETE('/api/jobs/{jobId}', { params }));
    case 'reschedule':
      return answer(api.POST('/api/jobs/{jobId}/reschedule', { params, body: { runAt: command.runAt } }));
  }
}

/** useCommand sends a command to a job, and shows the result; done runs after a success. */
export function useCommand(job: Job, done?: (command: Command) => void) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (command: Command) => send(job.jobId, command),
    onSuccess: (_, command) => {
      if (command.kind !== 'delete') {
        void client.invalidateQueries({ queryKey: ['job', job.jobId] }); // which is gone after a delete
      }
      void client.invalidateQueries({ queryKey: ['dead'] }); // it may have left the list
      done?.(command);
    },
    onError: reportProblem,
  });
}
