import { useState, type FormEvent } from 'react';
import { fromLocalInput, inputZone, toLocalInput } from '../../format/time';
import { Button } from '../../ui/Button';
import { Dialog } from '../../ui/Dialog';
import { Field } from '../../ui/Field';
import type { Job } from './queries';

interface Props {
  job: Job;
  busy: boolean;
  onClose: () => void;
  onChoose: (runAt: string) => void;
}

const SOON = [
  { label: 'Now', ms: 0 },
  { label: 'In 10 min', ms: 600_000 },
  { label: 'In an hour', ms: 3_600_000 },
  { label: 'In a day', ms: 86_400_000 },
] as const;

/** RescheduleDialog chooses the time from which a waiting job may run. */
export function RescheduleDialog({ job, busy, onClose, onChoose }: Props) {
  const [value, setValue] = useState(() => toLocalInput(new Date(job.nextRunAt ?? Date.now())));
  const runAt = fromLocalInput(value);

  const choose = (event: FormEvent) => {
    event.preventDefault();
    if (runAt !== null) {
      onChoose(runAt);
    }
  };

  return (
    <Dialog title="Reschedule" onClose={onClose}>
      <form className="stack" onSubmit={choose}>
        <div className="row-wrap">
          {SOON.map(({ label, ms }) => (
            <Button key={label} small busy={busy} onClick={() => onChoose(new Date(Date.now() + ms).toISOString())}>
              {label}
            </Button>
          ))}
        </div>
        <Field label="Not before" hint={`${inputZone()} A time in the past means now.`} error={runAt === null ? 'Enter a date and a time.' : undefined}>
          {(props) => (
            <input {...props} className="input" type="datetime-local" step="1" value={value} onChange={(event) => setValue(event.target.value)} />
          )}
        </Field>
        <div className="dialog-actions">
          <Button type="submit" variant="primary" busy={busy} disabled={runAt === null}>
            Reschedule
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
