import { useState, type FormEvent } from 'react';
import { asApiError, type ApiError } from '../api/error';
import { answer, api } from '../api/client';
import { IDLE_MINUTES, looksLikeKey, session, SESSION_HOURS, type Ended } from '../api/session';
import { Button } from '../ui/Button';
import { ErrorBox } from '../ui/ErrorBox';
import { Field } from '../ui/Field';
import type { Oidc } from '../api/oidc';
import { IssuerLogin } from './IssuerLogin';
import { Logo } from './Logo';
import './Login.css';

const ENDED: Record<Ended, string> = {
  refused: 'The gateway does not accept your key any more: it was revoked, or has expired. Log in with another one to go on where you were.',
  unused: 'You were logged out, because the session was not used, or is too old. Log in to go on where you were.',
};

const REFUSED = 'The API does not accept this key: it is mistyped, revoked or expired.';

/** Login asks for an API key, tries it, and keeps it for this tab. If there is an issuer, users can log in there. */
export function Login({ oidc }: { oidc: Oidc | null }) {
  const [text, setText] = useState('');
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<string>();
  const [problem, setProblem] = useState<ApiError>();
  const ended = session.ended();

  async function logIn(event: FormEvent) {
    event.preventDefault();
    const key = text.trim();
    setProblem(undefined);
    if (!looksLikeKey(key)) {
      setRefused(key === '' ? 'Enter an API key.' : 'A key has no spaces and only ASCII characters.');
      return;
    }
    setBusy(true);
    try {
      await answer(api.GET('/api/me', { headers: { Authorization: `Bearer ${key}` } }));
      session.open(key);
    } catch (thrown) {
      const error = asApiError(thrown);
      setRefused(error.status === 401 ? REFUSED : undefined);
      setProblem(error.status === 401 ? undefined : error);
      setBusy(false);
    }
  }

  return (
    <main className="login">
      <form className="login-box" onSubmit={(event) => void logIn(event)}>
        <Logo />
        <h1>Log in to JobWeaver</h1>
        {ended !== null && (
          <p className="login-ended" role="status">
            {ENDED[ended]}
          </p>
        )}
        {oidc && <IssuerLogin oidc={oidc} />}
        <Field label="API key" error={refused} hint={`It stays in this tab until you log out, close it, do nothing for ${IDLE_MINUTES} minutes, or for ${SESSION_HOURS} hours.`}>
          {(props) => (
            <input
              {...props}
              className="input"
              type="password"
              autoComplete="off"
              spellCheck={false}
              placeholder="jw_…"
              autoFocus
              value={text}
              onChange={(event) => setText(event.target.value)}
            />
          )}
        </Field>
        {problem && <ErrorBox error={problem} />}
        <Button type="submit" variant={oidc ? 'plain' : 'primary'} busy={busy}>
          Log in
        </Button>
        <p className="small muted">
          No key yet? An admin makes one with <code>POST /api/keys</code>; the first one of an installation comes from{' '}
          <code>jobweaver keys bootstrap</code>.
        </p>
      </form>
    </main>
  );
}
