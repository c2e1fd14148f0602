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
import { draft, hasWeight, toRequest, wrong, type Draft } from './form';
import { type Control, inWords, type Kind, usePutControl } from './queries';

interface Props {
  control?: Control; // the control to change; else the form asks for the subject
  onClose: () => void;
}

export function ControlForm({ control, onClose }: Props) {
  const { installation, ownerId } = useMe();
  const [form, setForm] = useState(() => draft(control, installation ? 'queue' : 'owner', installation ? '' : (ownerId ?? '')));
  const { kind, name, paused, most, rate, weight } = form;
  const set = (change: Partial<Draft>) => setForm({ ...form, ...change });
  const [tried, setTried] = useState(false);
  const put = usePutControl();
  const formId = useId();
  const problem = put.error === null ? null : asApiError(put.error);
  const at = (field: string) => problem?.details.find(({ path }) => path === field)?.message;
  const nameless = tried && name.trim() === '' ? 'is required' : undefined;
  const shown = problem?.details.some(({ path }) => ['name', 'maxRunning', 'startsPerSecond', 'weight'].includes(path));

  function submit(event: FormEvent) {
    event.preventDefault();
    setTried(true);
    if (name.trim() === '' || wrong(most) || wrong(rate) || (hasWeight(form) && wrong(weight))) {
      return;
    }
    put.mutate({ subject: { kind, name: name.trim() }, body: toRequest(form), seen: [control?.version ?? 0] }, { onSuccess: onClose });
  }

  return (
    <Dialog
      title={control ? `Limits of ${inWords(control)}` : 'New limit or pause'}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Close without saving</Button>
          <Button type="submit" form={formId} variant="primary" busy={put.isPending}>
            Save
          </Button>
        </>
      }
    >
      <form id={formId} className="stack" onSubmit={submit} noValidate>
        {!control && installation && (
          <div className="form-row">
            <Field label="Of">
              {(props) => (
                <select {...props} className="input" value={kind} onChange={(e) => set({ kind: e.target.value as Kind })}>
                  <option value="queue">a queue</option>
                  <option value="type">a job type</option>
                  <option value="owner">an owner</option>
                  <option value="fairnessKey">a fairness key</option>
                </select>
              )}
            </Field>
            <Name kind={kind} name={name} onChange={(next) => set({ name: next })} error={nameless ?? at('name')} />
          </div>
        )}
        {!control && !installation && <p>This holds all jobs of {name}.</p>}
        <label className="check">
          <input type="checkbox" checked={paused} onChange={(e) => set({ paused: e.target.checked })} /> Paused: none starts
        </label>
        <div className="form-row">
          <Field label="Run at once, at most" error={(tried ? wrong(most) : undefined) ?? at('maxRunning')} hint="Empty: any number.">
            {(props) => <input {...props} className="input" inputMode="numeric" value={most} onChange={(e) => set({ most: e.target.value })} />}
          </Field>
          <Field
            label="Starts a second, at most"
            error={(tried ? wrong(rate) : undefined) ?? at('startsPerSecond')}
            hint="Empty: any. 0.1: one in ten seconds."
          >
            {(props) => <input {...props} className="input" inputMode="decimal" value={rate} onChange={(e) => set({ rate: e.target.value })} />}
          </Field>
        </div>
        {hasWeight(form) && (
          <Field
            label="Weight"
            error={(tried ? wrong(weight) : undefined) ?? at('weight')}
            hint="Its starts for each start of another key of the queue, 1 to 100. Empty: 1."
          >
            {(props) => <input {...props} className="input" inputMode="numeric" value={weight} onChange={(e) => set({ weight: e.target.value })} />}
          </Field>
        )}
        {problem && !shown && <ErrorBox error={problem} />}
      </form>
    </Dialog>
  );
}

interface NameProps {
  kind: Kind;
  name: string;
  onChange: (name: string) => void;
  error: string | undefined;
}

/** Name offers the existing queues and job types. */
function Name({ kind, name, onChange, error }: NameProps) {
  const types = useQuery(jobTypesQuery);
  const id = useId();
  const known = types.data?.jobTypes ?? [];
  const offered = { queue: [...new Set(known.flatMap((type) => type.queues))], type: known.map((type) => type.name), owner: [], fairnessKey: [] }[kind];
  return (
    <Field label="Name" error={error}>
      {(props) => (
        <>
          <input {...props} className="input" list={id} value={name} onChange={(e) => onChange(e.target.value)} />
          <datalist id={id}>
            {offered.map((one) => (
              <option key={one} value={one} />
            ))}
          </datalist>
        </>
      )}
    </Field>
  );
}
