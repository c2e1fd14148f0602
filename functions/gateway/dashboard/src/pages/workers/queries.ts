import { answer, api, type Schemas } from '../../api/client';
import { useAction } from '../../api/useAction';

export type Queue = Schemas['QueueInfo'];
export type QueueWorkers = Schemas['QueueWorkers'];

const at = (queue: string) => ({ params: { path: { queue } } });
const CHANGES = ['queues'];

export function useCreateQueue() {
  return useAction({
    run: ({ name, workers }: { name: string; workers: QueueWorkers }) =>
      answer(api.PUT('/api/queues/{queue}', { ...at(name), body: { workers } })),
    done: ({ queue }) => `The queue ${queue} takes jobs.`,
    changes: CHANGES,
    quiet: true,
  });
}

export function useRemoveQueue() {
  return useAction({
    run: ({ name, drain }: { name: string; drain: boolean }) =>
      answer(api.DELETE('/api/queues/{queue}', { params: { path: { queue: name }, query: { drain } } })),
    done: ({ queue }) => `The queue ${queue} takes no new jobs. It is gone when it is empty.`,
    changes: CHANGES,
    quiet: true,
  });
}
