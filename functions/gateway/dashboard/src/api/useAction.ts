import { useMutation, useQueryClient } from '@tanstack/react-query';
import { toast } from '../ui/toasts';
import { advice, asApiError } from './error';

interface Undo {
  label: string;
  run: () => void;
}

interface Options<Input, Result> {
  run: (input: Input) => Promise<Result>;
  /** a sentence about the result; absent if the page itself shows it */
  done?: (result: Result, input: Input) => string;
  undo?: (result: Result, input: Input) => Undo | undefined;
  /** queries whose first key is one of these may have changed */
  changes: readonly string[];
  /** the form itself shows its errors */
  quiet?: boolean;
}

/** useAction makes a change, shows the result or the error, and reads again the data that may have changed. */
export function useAction<Input, Result>({ run, done, undo, changes, quiet = false }: Options<Input, Result>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: run,
    onSuccess: (result, input) => {
      const action = undo?.(result, input);
      if (done) {
        toast(done(result, input), action ? { action } : {});
      }
    },
    onError: (thrown) => {
      if (!quiet) {
        const error = asApiError(thrown);
        toast(error.message, { tone: 'problem', detail: advice(error) });
      }
    },
    onSettled: () =>
      client.invalidateQueries({ predicate: (query) => changes.includes(String(query.queryKey[0])) }),
  });
}
