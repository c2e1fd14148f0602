import { Refused, renew } from './oidc';
import { session } from './session';

const AGAIN_MS = 5_000; // after a failure

let renewing: Promise<void> | undefined; // for all requests: an issuer takes a refresh token once

/** fresh renews the token of the session if it ends soon, before a request is sent. */
export function fresh(): Promise<void> {
  const due = session.due(Date.now());
  if (due === null) {
    return Promise.resolve();
  }
  renewing ??= renew(due)
    .then(
      (tokens) => session.renewed(tokens),
      (thrown: unknown) => (thrown instanceof Refused ? session.renewed(null) : session.renewLater(AGAIN_MS)),
    )
    .finally(() => {
      renewing = undefined;
    });
  return renewing;
}
