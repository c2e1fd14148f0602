import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, type ReactNode } from 'react';
import { answer, api } from '../api/client';
import { asApiError } from '../api/error';
import { MeContext } from '../api/me';
import { session, useKey, useOwner } from '../api/session';
import { Login } from './Login';
import { mayGetBetter } from './queryClient';
import { Starting } from './Starting';

const PATIENCE_MS = 10_000; // for one answer; the next request may reach another gateway

/** asked is how the dashboard asks for what it cannot start without: until there is an answer, or a refusal. */
const asked = {
  staleTime: 60_000,
  retry: (_: number, error: unknown) => mayGetBetter(error),
  retryDelay: (failures: number) => Math.min(1000 * 2 ** failures, 5000),
};

function within(signal: AbortSignal): AbortSignal {
  return AbortSignal.any([signal, AbortSignal.timeout(PATIENCE_MS)]);
}

/**
 * Session asks the API who the reader is, and shows the login screen where it needs a key to know. Without a key it asks
 * first whether one is needed, so that no request is refused.
 */
export function Session({ children }: { children: ReactNode }) {
  const key = useKey();
  const owner = useOwner();
  const client = useQueryClient();
  const login = useQuery({
    ...asked,
    queryKey: ['login'],
    queryFn: ({ signal }) => answer(api.GET('/api/login', { signal: within(signal) })),
    enabled: key === null,
  });
  const known = key !== null || login.data?.auth === 'off';
  const me = useQuery({
    ...asked,
    queryKey: ['me', key, owner],
    queryFn: ({ signal }) => answer(api.GET('/api/me', { signal: within(signal) })),
    enabled: known,
  });

  useEffect(() => {
    // what one key or owner has read is not shown to another
    client.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== 'me' && queryKey[0] !== 'login' });
  }, [client, key, owner]);

  if (!known && login.data) {
    return <Login oidc={login.data.oidc} />;
  }
  if (!known && asApiError(login.failureReason).status === 503) {
    return <Login oidc={null} />; // the issuer is away
  }
  if (me.isError && asApiError(me.error).status === 401) {
    return <Login oidc={null} />;
  }
  if (me.data) {
    return <MeContext value={me.data}>{children}</MeContext>;
  }
  const waiting = known ? me : login;
  if (owner !== null && asApiError(waiting.failureReason).status === 403) {
    const alone = () => session.actFor(null);
    return <Starting problem={waiting.failureReason} repeats={false} onRetry={alone} />; // not for this owner: as itself again
  }
  const again = () => void client.resetQueries({ queryKey: [known ? 'me' : 'login'] });
  return <Starting problem={waiting.failureReason} repeats={!waiting.isError} onRetry={again} />;
}
