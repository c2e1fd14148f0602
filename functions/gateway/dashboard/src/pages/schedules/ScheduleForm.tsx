import { useId, useMemo, useState, type FormEvent } from 'react';
import { asApiError } from '../../api/error';
import { timeZones } from '../../format/zone';
import { Button } from '../../ui/Button';
import { Dialog } from '../../ui/Dialog';
import { ErrorBox } from '../../ui/ErrorBox';
import { Field } from '../../ui/Field';
import '../../ui/form.css';
import { draft, problemAt, toRequest, type Draft } from './form';
import { Preview } from './Preview';
import { type Schedule, useSave } from './queries';

interface Props {
  schedule?: Schedule; // the schedule to change; else the form creates one
  tag?: string; // of that schedule as it was read
  onClose: () => void;
}

const SHOWN = ['name', 'cron', 'timeZone', 'job', 'startAt', 'endAt'];

export function ScheduleForm({ schedule, tag, onClose }: Props) {
  const [form, setForm] = useState(() => draft(schedule));
  const [read] = useState(tag); // the page goes on reading while the form is open
  const [noJSON, setNoJSON] = useState<string>();
  const save = useSave();
  const formId = useId();
  const problem = save.error === null ? null : asApiError(save.error);
  const at = (field: string) => (problem === null ? undefined : problemAt(problem.details, field));
  const set = (change: Partial<Draft>) => setForm({ ...form, ...change });

  function submit(event: FormEvent) {
    event.preventDefault();
    const made = toRequest(form);
    setNoJSON('error' in made ? made.error : undefined);
    if ('body' in made) {
      save.mutate({ tag: read, body: made.body, of: schedule }, { onSuccess: onClose });
    }
  }

  return (
    <Dialog
      wide
      title={schedule ? `Edit ${schedule.name}` : 'New schedule'}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Close without saving</Button>
          <Button type="submit" form={formId} variant="primary" busy={save.isPending}>
            {schedule ? 'Save' : 'Create schedule'}
          </Button>
        </>
      }
    >
      <form id={formId} className="stack" onSubmit={submit} noValidate>
        {!schedule && (
          <Field label="Name" error={at('name')} hint="Letters, digits, dots, dashes and underscores.">
            {(props) => <input {...props} className="input" value={form.name} onChange={(e) => set({ name: e.target.value })} />}
          </Field>
        )}
        <When form={form} set={set} at={at} />
        <Preview form={form} />
        <Field label="Job" error={noJSON ?? at('job')} hint="A JobRequest, as POST /api/jobs takes it.">
          {(props) => (
            <textarea {...props} className="input" rows={8} spellCheck={false} value={form.job} onChange={(e) => set({ job: e.target.value })} />
          )}
        </Field>
        <Rules form={form} set={set} at={at} />
        {problem && !problem.details.some(({ path }) => SHOWN.some((field) => problemAt([{ path, message: '' }], field) !== undefined)) && (
          <ErrorBox error={problem} />
        )}
      </form>
    </Dialog>
  );
}

interface PartProps {
  form: Draft;
  set: (change: Partial<Draft>) => void;
  at: (field: string) => string | undefined;
}

function When({ form, set, at }: PartProps) {
  const zones = useId();
  const known = useMemo(timeZones, []);
  return (
    <div className="form-row">
      <Field
        label="Cron"
        error={at('cron')}
        hint={
          <>
            Minute, hour, day, month, weekday: <code>30 6 * * MON-FRI</code>; with seconds first, six; <code>@hourly</code>, <code>@every 90s</code>.
          </>
        }
      >
        {(props) => (
          <input {...props} className="input mono" spellCheck={false} value={form.cron} onChange={(e) => set({ cron: e.target.value })} />
        )}
      </Field>
      <Field label="Time zone" error={at('timeZone')} hint="The time zone of the cron expression.">
        {(props) => (
          <>
            <input {...props} className="input" list={zones} value={form.timeZone} onChange={(e) => set({ timeZone: e.target.value })} />
            <datalist id={zones}>
              {known.map((zone) => (
                <option key={zone} value={zone} />
              ))}
            </datalist>
          </>
        )}
      </Field>
    </div>
  );
}

function Rules({ form, set, at }: PartProps) {
  return (
    <>
      <div className="form-row">
        <Field label="While its last job runs">
          {(props) => (
            <select {...props} className="input" value={form.overlap} onChange={(e) => set({ overlap: e.target.value as Draft['overlap'] })}>
              <option value="allow">start another</option>
              <option value="skip">skip the time</option>
              <option value="cancel">cancel it and start another</option>
            </select>
          )}
        </Field>
        <Field label="Times that were missed">
          {(props) => (
            <select {...props} className="input" value={form.missed} onChange={(e) => set({ missed: e.target.value as Draft['missed'] })}>
              <option value="one">run once, for the last one</option>
              <option value="skip">skip them</option>
              <option value="all">run all, up to 1,000</option>
            </select>
          )}
        </Field>
      </div>
      <div className="form-row">
        <Field label="From" error={at('startAt')} hint="Empty: at once. Your local time.">
          {(props) => (
            <input {...props} type="datetime-local" className="input" value={form.startAt} onChange={(e) => set({ startAt: e.target.value })} />
          )}
        </Field>
        <Field label="Until" error={at('endAt')} hint="Empty: for ever. Your local time.">
          {(props) => (
            <input {...props} type="datetime-local" className="input" value={form.endAt} onChange={(e) => set({ endAt: e.target.value })} />
          )}
        </Field>
      </div>
      <label className="check">
        <input type="checkbox" checked={form.paused} onChange={(e) => set({ paused: e.target.checked })} /> Paused
      </label>
    </>
  );
}
