import { useState } from 'react';
import { Button } from '../../ui/Button';
import { Dialog } from '../../ui/Dialog';
import { type Flow, type FlowRetry, useRunFlowAgain } from '../batches/queries';
import { failed } from './failure';
import { byName } from './nodes';

interface Props {
  flow: Flow;
  first?: string | null; // the job that is chosen at first; otherwise those that failed
  compensated: boolean; // a retry was refused for that
  onClose: () => void;
}

/** RetryDialog asks what of a flow runs again as new jobs. */
export function RetryDialog({ flow, first, compensated, onClose }: Props) {
  const names = Object.keys(flow.jobs).sort(byName);
  const [from, setFrom] = useState<string[]>(() => (first ? [first] : failed(flow)));
  const again = useRunFlowAgain(onClose);
  const run = (asked: FlowRetry) => again.mutate({ flow, asked });
  return (
    <Dialog
      title={`What of ${flow.name ?? 'the flow'} runs again?`}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Keep it as it is</Button>
          <Button busy={again.isPending} onClick={() => run({ all: true })}>
            The whole flow
          </Button>
          <Button busy={again.isPending} disabled={from.length === 0} onClick={() => run({ from })}>
            From the chosen jobs on
          </Button>
        </>
      }
    >
      {compensated && (
        <p>
          A job that waits for the failure of another one has run. What it has undone is not done again, unless the jobs before it run
          again, too.
        </p>
      )}
      <p>The chosen jobs and all that come after them run again as new jobs. The old ones stay as they ended, and count no more.</p>
      <label className="stack">
        From
        <select
          multiple
          size={Math.min(names.length, 8)}
          value={from}
          onChange={(e) => setFrom(Array.from(e.currentTarget.selectedOptions, (option) => option.value))}
        >
          {names.map((name) => (
            <option key={name} value={name}>
              {name} ({flow.jobs[name]?.status?.toLowerCase() ?? 'deleted'})
            </option>
          ))}
        </select>
      </label>
    </Dialog>
  );
}
