import type { Schemas } from '../../api/client';
import { plural } from '../../format/number';
import type { Counted } from './bulk';

interface Props {
  operation: Pick<Schemas['Operation'], 'status' | 'progress' | 'reasons' | 'finishedAt'>;
  total: Counted | undefined;
}

/** OperationProgress shows the progress of an operation, and why it skipped jobs. */
export function OperationProgress({ operation, total }: Props) {
  const { progress, reasons, finishedAt } = operation;
  const done = progress.applied + progress.refused + progress.skipped;
  return (
    <div className="stack" aria-live="polite">
      {!finishedAt && (
        <progress
          className="operation-progress"
          aria-label="Progress"
          value={total && !total.more ? Math.min(done, total.n) : undefined}
          max={total && !total.more ? total.n : undefined}
        />
      )}
      <p>
        Carried out for {plural(progress.applied, 'job')}
        {progress.skipped + progress.refused > 0 && `, not for ${plural(progress.skipped + progress.refused, 'job')}`}.
        {!finishedAt && ' It goes on when this window is closed.'}
      </p>
      {reasons.length > 0 && (
        <ul className="error-details">
          {reasons.map((reason) => (
            <li key={reason.reason}>
              {plural(reason.jobs, 'job')}: {reason.reason}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
