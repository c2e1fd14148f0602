import { useEffect, useState } from 'react';
import { base } from '../api/base';
import { begin, callbackPath, finish, type Oidc } from '../api/oidc';
import { session } from '../api/session';
import { Button } from '../ui/Button';
import { ErrorBox } from '../ui/ErrorBox';

// The code in the address is good for one request, and React mounts twice in development.
let finishing: ReturnType<typeof finish> | undefined;

/** IssuerLogin logs in at the issuer, and finishes a login when the issuer has sent the browser back. */
export function IssuerLogin({ oidc }: { oidc: Oidc }) {
  const [problem, setProblem] = useState<unknown>();
  const [busy, setBusy] = useState(false);

  useEffect(() => {
    if (location.pathname !== callbackPath || !/[?&](code|error)=/.test(location.search)) {
      return;
    }
    setBusy(true);
    finishing ??= finish(oidc, location.search);
    finishing.then(
      ({ tokens, back }) => {
        history.replaceState(null, '', back.startsWith(callbackPath) ? `${base}/` : back);
        session.open(tokens.token, tokens);
      },
      (thrown: unknown) => {
        history.replaceState(null, '', `${base}/`);
        setBusy(false);
        setProblem(thrown);
      },
    );
  }, [oidc]);

  const logIn = () => {
    setProblem(undefined);
    setBusy(true);
    finishing = undefined;
    begin(oidc).catch((thrown: unknown) => {
      setBusy(false);
      setProblem(thrown);
    });
  };

  return (
    <>
      {problem !== undefined && <ErrorBox error={problem} title="You are not logged in" />}
      <Button variant="primary" busy={busy} onClick={logIn}>
        Log in at {new URL(oidc.issuer).host}
      </Button>
      <p className="small muted">Or with an API key:</p>
    </>
  );
}
