import { useQuery } from '@tanstack/react-query';
import { useId, useState, type FormEvent } from 'react';
import { asApiError } from '../../api/error';
import { useMe } from '../../api/me';
import { jobTypesQuery } from '../../api/queries';
import { Button } from '../../ui/Button';
import { Dialog } from '../../ui/Dialog';
import { ErrorBox } from '../../ui/ErrorBox';
import { Field } from '../../ui/Field';
import '../../ui/form.css';
import { problemAt } from '../schedules/form';
import { destination, draft, KINDS, toRequest, type Draft, type Kind } from './form';
import { type Alert, useSave } from './queries';

interface Props {
  alert?: Alert; // the alert to change; else the form creates one
  tag?: string; // of that alert as it was read
  counts?: Pick<Draft, 'jobType' | 'queue'>; // of a new alert
  onClose: () => void;
}

const SHOWN = ['name', 'jobType', 'queue', 'errorCode', 'failures', 'percent', 'windowMinutes', 'quietMinutes', 'to'];

export function AlertForm({ alert, tag, counts, onClose }: Props) {
  const me = useMe();
  const [form, setForm] = useState(() => ({ ...draft(alert), ...counts }));
  const [read] = useState(tag); // the page goes on reading while the form is open
  const save = useSave();
  const formId = useId();
  const problem = save.error === null ? null : asApiError(save.error);
  const at = (field: string) => (problem === null ? undefined : problemAt(problem.details, field));
  const set = (change: Partial<Draft>) => setForm({ ...form, ...change });

  function submit(event: FormEvent) {
    event.preventDefault();
    save.mutate({ tag: read, body: toRequest(form), of: alert }, { onSuccess: onClose });
  }

  return (
    <Dialog
      wide
      title={alert ? `Edit ${alert.name}` : 'New alert'}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Close without saving</Button>
          <Button type="submit" form={formId} variant="primary" busy={save.isPending}>
            {alert ? 'Save' : 'Create alert'}
          </Button>
        </>
      }
    >
      <form id={formId} className="stack" onSubmit={submit} noValidate>
        {!alert && (
          <Field label="Name" error={at('name')} hint="Small letters, digits, dots, dashes and underscores.">
            {(props) => <input {...props} className="input" value={form.name} onChange={(e) => set({ name: e.target.value })} />}
          </Field>
        )}
        <Which form={form} set={set} at={at} />
        {me.installation && (alert?.ownerId ?? null) === null && <p className="small muted">It counts the jobs of all owners.</p>}
        <When form={form} set={set} at={at} />
        <Where form={form} set={set} at={at} alert={alert} />
        <label className="check">
          <input type="checkbox" checked={form.paused} onChange={(e) => set({ paused: e.target.checked })} /> Paused
        </label>
        {problem && !SHOWN.some((field) => at(field) !== undefined) && <ErrorBox error={problem} />}
      </form>
    </Dialog>
  );
}

interface PartProps {
  form: Draft;
  set: (change: Partial<Draft>) => void;
  at: (field: string) => string | undefined;
}

function Which({ form, set, at }: PartProps) {
  const id = useId();
  const types = useQuery(jobTypesQuery);
  const names = types.data?.jobTypes.map(({ name }) => name) ?? [];
  const queues = [...new Set(types.data?.jobTypes.flatMap(({ queues }) => queues))];
  return (
    <div className="form-row">
      <Field label="Job type" error={at('jobType')} hint="Empty: all types.">
        {(props) => (
          <>
            <input {...props} className="input" list={`${id}-types`} value={form.jobType} onChange={(e) => set({ jobType: e.target.value })} />
            <datalist id={`${id}-types`}>
              {names.map((name) => (
                <option key={name} value={name} />
              ))}
            </datalist>
          </>
        )}
      </Field>
      <Field label="Queue" error={at('queue')} hint="Empty: all queues.">
        {(props) => (
          <>
            <input {...props} className="input" list={`${id}-queues`} value={form.queue} onChange={(e) => set({ queue: e.target.value })} />
            <datalist id={`${id}-queues`}>
              {queues.map((name) => (
                <option key={name} value={name} />
              ))}
            </datalist>
          </>
        )}
      </Field>
      <Field label="Error code" error={at('errorCode')} hint="Empty: all failures.">
        {(props) => <input {...props} className="input" spellCheck={false} value={form.errorCode} onChange={(e) => set({ errorCode: e.target.value })} />}
      </Field>
    </div>
  );
}

function When({ form, set, at }: PartProps) {
  const number = (label: string, name: 'failures' | 'percent' | 'windowMinutes' | 'quietMinutes', hint: string, most: number) => (
    <Field label={label} error={at(name)} hint={hint}>
      {(props) => (
        <input
          {...props}
          type="number"
          className="input"
          min={1}
          max={most}
          step={1}
          value={form[name]}
          onChange={(e) => set({ [name]: e.target.value })}
        />
      )}
    </Field>
  );
  return (
    <div className="form-row">
      {number('Failures', 'failures', 'Jobs that failed for good: it fires at as many.', 1_000_000)}
      {number('Within minutes', 'windowMinutes', 'At most 60.', 60)}
      {number('And percent', 'percent', 'Of the jobs that ended. Empty: any.', 100)}
      {number('Quiet minutes', 'quietMinutes', 'Before it is announced again.', 10_080)}
    </div>
  );
}

const LABELS: Record<Kind, { label: string; hint: string }> = {
  slack: { label: 'URL of the incoming webhook', hint: 'As in https://hooks.slack.com/services/…; other systems that take {"text"} work as well.' },
  webhook: { label: 'URL', hint: 'It gets a signed CloudEvent.' },
  email: { label: 'Addresses', hint: 'With commas between them.' },
};

function Where({ form, set, at, alert }: PartProps & { alert: Alert | undefined }) {
  const kept = alert !== undefined && form.kind !== 'email' && form.to !== '' && form.to === destination(alert.to);
  return (
    <div className="form-row">
      <Field label="Send notices to">
        {(props) => (
          <select {...props} className="input" value={form.kind} onChange={(e) => set({ kind: e.target.value as Kind, to: '' })}>
            {Object.entries(KINDS).map(([kind, name]) => (
              <option key={kind} value={kind}>
                {name}
              </option>
            ))}
          </select>
        )}
      </Field>
      <Field
        label={LABELS[form.kind].label}
        error={at('to')}
        hint={kept ? 'Its path is hidden. Leave it as it is to keep it, or write another URL.' : LABELS[form.kind].hint}
      >
        {(props) => (
          <input {...props} className="input" spellCheck={false} autoComplete="off" value={form.to} onChange={(e) => set({ to: e.target.value })} />
        )}
      </Field>
    </div>
  );
}
