import { queryOptions } from '@tanstack/react-query';
import { answer, api, type Schemas } from '../../api/client';
import { asApiError } from '../../api/error';
import { useAction } from '../../api/useAction';

export type Batch = Schemas['Batch'];
export type Flow = Schemas['JobFlow'];
export type FlowSummary = Schemas['FlowPage']['flows'][number];
export type BatchSummary = Schemas['BatchPage']['batches'][number];

/** nameOf returns what a batch is called: its name, or its id. */
export const nameOf = ({ name, batchId }: BatchSummary): string => name ?? batchId;

export const hasEnded = ({ finishedAt }: { finishedAt: string | null }): boolean => finishedAt !== null;

export const batchQuery = (batchId: string) =>
  queryOptions({
    queryKey: ['batches', batchId],
    queryFn: ({ signal }) => answer(api.GET('/api/batches/{batchId}', { params: { path: { batchId } }, signal })),
  });

const of = ({ batchId }: BatchSummary) => ({ params: { path: { batchId } } });
const CHANGES = ['batches', 'flows', 'operations', 'jobs'];

export function useClose() {
  return useAction({
    run: (batch: BatchSummary) => answer(api.POST('/api/batches/{batchId}/close', of(batch))),
    done: () => 'No more jobs join the batch. It ends with the last of its jobs.',
    changes: CHANGES,
  });
}

export function useCancel(done: () => void) {
  return useAction({
    run: async (batch: BatchSummary) => {
      const started = await answer(api.POST('/api/batches/{batchId}/cancel', of(batch)));
      done();
      return started;
    },
    done: () => 'The jobs of the batch are being cancelled.',
    changes: CHANGES,
  });
}

export function useRetry() {
  return useAction({
    run: (batch: BatchSummary) => answer(api.POST('/api/batches/{batchId}/retry', of(batch))),
    done: () => 'The jobs of the batch that failed or were cancelled run again.',
    changes: CHANGES,
  });
}

const ofFlow = ({ flowId }: FlowSummary) => ({ params: { path: { flowId } } });

export function useCancelFlow(done: () => void) {
  return useAction({
    run: async (flow: FlowSummary) => {
      const started = await answer(api.POST('/api/flows/{flowId}/cancel', ofFlow(flow)));
      done();
      return started;
    },
    done: () => 'The jobs of the flow are being cancelled.',
    changes: CHANGES,
  });
}

export type FlowRetry = Schemas['FlowRetryRequest'];

/** useRunFlowAgain has new jobs run in the places of some jobs of a flow, or of all. */
export function useRunFlowAgain(done: () => void) {
  return useAction({
    run: async ({ flow, asked }: { flow: FlowSummary; asked: FlowRetry }) => {
      const started = await answer(api.POST('/api/flows/{flowId}/retry', { ...ofFlow(flow), body: asked }));
      done();
      return started;
    },
    done: ({ jobs }) => `${jobs} new jobs of the flow run.`,
    changes: CHANGES,
  });
}

/** useRetryFlow retries a flow. compensated is called if the request must say what runs again. */
export function useRetryFlow(compensated: () => void) {
  return useAction({
    run: async (flow: FlowSummary) => {
      try {
        return await answer(api.POST('/api/flows/{flowId}/retry', ofFlow(flow)));
      } catch (thrown) {
        if (asApiError(thrown).code === 'API.FLOW_COMPENSATED') {
          compensated();
        }
        throw thrown;
      }
    },
    done: () => 'The jobs of the flow that failed or were cancelled run again, in the order of the graph.',
    changes: CHANGES,
  });
}
