import { useId, useState, type FormEvent } from 'react';
import { answer, api, type Schemas } from '../../api/client';
import { asApiError } from '../../api/error';
import { useMe, type Role } from '../../api/me';
import { useAction } from '../../api/useAction';
import { fromLocalInput } from '../../format/time';
import { Button } from '../../ui/Button';
import { Code } from '../../ui/Code';
import { Dialog } from '../../ui/Dialog';
import { ErrorBox } from '../../ui/ErrorBox';
import { Field } from '../../ui/Field';
import '../../ui/form.css';
import type { StoredKey } from './state';

const ROLES: Record<Role, string> = {
  submit: 'submits jobs, reads nothing',
  read: 'sees jobs, schedules, workers and statistics',
  operate: 'both, and cancels, retries, schedules and pauses',
  work: 'claim attempts of jobs, and settle them',
  admin: 'all of these, and creates keys and reads the audit log',
};

interface MakingProps {
  onMade: (key: Schemas['NewKey']) => void;
  onClose: () => void;
}

export function CreateKey({ onMade, onClose }: MakingProps) {
  const { installation } = useMe();
  const [name, setName] = useState('');
  const [roles, setRoles] = useState<Role[]>(['read']);
  const [owner, setOwner] = useState('');
  const [until, setUntil] = useState('');
  const formId = useId();
  const create = useAction({
    run: (body: Schemas['KeyRequest']) => answer(api.POST('/api/keys', { body })),
    changes: ['keys'],
    quiet: true,
  });
  const problem = create.error === null ? null : asApiError(create.error);
  const at = (field: string) => problem?.details.find(({ path }) => path === field)?.message;

  function submit(event: FormEvent) {
    event.preventDefault();
    const body = { name: name.trim(), roles, expiresAt: fromLocalInput(until), ownerId: owner.trim() === '' ? null : owner.trim() };
    create.mutate(body, { onSuccess: onMade });
  }

  return (
    <Dialog
      title="New key"
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Close without a key</Button>
          <Button type="submit" form={formId} variant="primary" busy={create.isPending}>
            Make the key
          </Button>
        </>
      }
    >
      <form id={formId} className="stack" onSubmit={submit} noValidate>
        <Field label="Name" error={at('name')} hint="What it is for, such as the program that will use it.">
          {(props) => <input {...props} className="input" value={name} onChange={(e) => setName(e.target.value)} />}
        </Field>
        <fieldset className="plain-fieldset">
          <legend>Roles</legend>
          {(Object.keys(ROLES) as Role[]).map((role) => (
            <label key={role} className="check">
              <input
                type="checkbox"
                checked={roles.includes(role)}
                onChange={(e) => setRoles(e.target.checked ? [...roles, role] : roles.filter((other) => other !== role))}
              />
              <span>
                <strong>{role}</strong> <span className="muted">{ROLES[role]}</span>
              </span>
            </label>
          ))}
          {at('roles') && <p className="field-error small">{at('roles')}</p>}
        </fieldset>
        {installation && (
          <Field label="Owner" error={at('ownerId')} hint="Whose things it sees. Empty: the installation's own key, which sees all.">
            {(props) => <input {...props} className="input" value={owner} onChange={(e) => setOwner(e.target.value)} />}
          </Field>
        )}
        <Field label="Expires" error={at('expiresAt')} hint="Empty: never. Your local time.">
          {(props) => <input {...props} type="datetime-local" className="input" value={until} onChange={(e) => setUntil(e.target.value)} />}
        </Field>
        {problem && problem.details.length === 0 && <ErrorBox error={problem} />}
      </form>
    </Dialog>
  );
}

/** NewKey shows a new key, which cannot be shown again. */
export function NewKey({ made, onClose }: { made: Schemas['NewKey']; onClose: () => void }) {
  return (
    <Dialog
      title={`The key ${made.name}`}
      onClose={onClose}
      actions={
        <Button variant="primary" onClick={onClose}>
          I have stored it
        </Button>
      }
    >
      <p>Copy it to where it is used. Only its hash is stored here, so it is never shown again.</p>
      <Code label="the API key" text={made.key} />
    </Dialog>
  );
}

const OVERLAPS: [number, string][] = [
  [0, 'at once'],
  [3600, 'in an hour'],
  [86_400, 'in a day'],
  [604_800, 'in a week'],
];

export function RotateKey({ stored, onMade, onClose }: MakingProps & { stored: StoredKey }) {
  const [overlap, setOverlap] = useState(86_400);
  const rotate = useAction({
    run: (overlapSeconds: number) =>
      answer(api.POST('/api/keys/{keyId}/rotate', { params: { path: { keyId: stored.keyId } }, body: { overlapSeconds } })),
    changes: ['keys'],
    quiet: true,
  });
  return (
    <Dialog
      title={`Rotate ${stored.name}`}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Keep it</Button>
          <Button variant="primary" busy={rotate.isPending} onClick={() => rotate.mutate(overlap, { onSuccess: onMade })}>
            Rotate
          </Button>
        </>
      }
    >
      <p>A new key with the same roles takes its place. Until the old one ends, both work.</p>
      <Field label="The old key ends">
        {(props) => (
          <select {...props} className="input" value={overlap} onChange={(e) => setOverlap(Number(e.target.value))}>
            {OVERLAPS.map(([seconds, words]) => (
              <option key={seconds} value={seconds}>
                {words}
              </option>
            ))}
          </select>
        )}
      </Field>
      {rotate.error && <ErrorBox error={rotate.error} />}
    </Dialog>
  );
}

export function RevokeKey({ stored, onClose }: { stored: StoredKey; onClose: () => void }) {
  const { actor } = useMe();
  const revoke = useAction({
    run: (keyId: string) => answer(api.DELETE('/api/keys/{keyId}', { params: { path: { keyId } } })),
    done: ({ name }) => `${name} is revoked. It is refused everywhere within 10 s.`,
    changes: ['keys'],
    quiet: true,
  });
  return (
    <Dialog
      title={`Revoke ${stored.name}?`}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Keep it</Button>
          <Button variant="danger" busy={revoke.isPending} onClick={() => revoke.mutate(stored.keyId, { onSuccess: onClose })}>
            Revoke
          </Button>
        </>
      }
    >
      <p>Programs that use it get no answer but 401 within 10 s. This cannot be undone; a new key can be made.</p>
      {actor === `key:${stored.keyId}` && <p>It is the key that you are logged in with: you will be logged out.</p>}
      {revoke.error && <ErrorBox error={revoke.error} />}
    </Dialog>
  );
}
