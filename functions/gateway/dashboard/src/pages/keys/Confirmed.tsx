import { useId, useState, type FormEvent, type ReactNode } from 'react';
import { answer, api } from '../../api/client';
import { begin } from '../../api/oidc';
import { session } from '../../api/session';
import { useAction } from '../../api/useAction';
import { Button } from '../../ui/Button';
import { Dialog } from '../../ui/Dialog';
import { ErrorBox } from '../../ui/ErrorBox';
import { Field } from '../../ui/Field';

/** Confirmed shows its children to a user who has just logged in, and asks every other one to do so again: a key outlives the session. */
export function Confirmed({ children, onClose }: { children: ReactNode; onClose: () => void }) {
  const [proved, setProved] = useState(session.isProved);
  const [text, setText] = useState('');
  const [wrong, setWrong] = useState(false);
  const formId = useId();
  const again = useAction({
    run: async () => {
      const { oidc } = await answer(api.GET('/api/login'));
      return oidc === null ? session.close() : begin(oidc, true);
    },
    changes: [],
    quiet: true,
  });
  if (proved) {
    return children;
  }
  const isKey = session.key()?.startsWith('jw_') === true;

  function submit(event: FormEvent) {
    event.preventDefault();
    const right = session.prove(text.trim());
    setWrong(!right);
    setProved(right);
  }

  return (
    <Dialog
      title="Is it you?"
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          {isKey ? (
            <Button type="submit" form={formId} variant="primary">
              Continue
            </Button>
          ) : (
            <Button variant="primary" busy={again.isPending} onClick={() => again.mutate(undefined)}>
              Log in again
            </Button>
          )}
        </>
      }
    >
      <p>A new key works after you have logged out. Log in again before you make one.</p>
      {isKey && (
        <form id={formId} onSubmit={submit} noValidate>
          <Field label="Your API key" error={wrong ? 'It is not the key that you are logged in with.' : undefined}>
            {(props) => (
              <input {...props} className="input" type="password" autoComplete="off" value={text} onChange={(e) => setText(e.target.value)} />
            )}
          </Field>
        </form>
      )}
      {again.error && <ErrorBox error={again.error} />}
    </Dialog>
  );
}
