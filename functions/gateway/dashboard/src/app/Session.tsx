import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, type ReactNode } from 'react';
import { answer, api } from '../api/client';
import { asApiError } from '../api/error';
import { MeContext } from '../api/me';
import { session, useKey, useOwner } from '../api/session';
import { Login } from './Login';
import { mayGetBetter } from './queryClient';
import { actFor } from './router';
import { Starting } from './Starting';

const PATIENCE_MS = 10_000; // for one response; the next request may reach another gateway

/** asked are the options of queries without which the dashboard cannot start: they are repeated until there is a response or a refusal. */
const asked = {
  staleTime: 60_000,
  retry: (_: number, error: unknown) => mayGetBetter(error),
  retryDelay: (failures: number) => Math.min(1000 * 2 ** failures, 5000),
};

function within(signal: AbortSignal): AbortSignal {
  return AbortSignal.any([signal, AbortSignal.timeout(PATIENCE_MS)]);
}

/**
 * Session reads the identity of the user, and shows the login screen if that needs a key. Without a key it first asks whether
 * one is needed, so that no request is refused.
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

  useEffect(() => session.watch(), []);

  const whose = JSON.stringify([key, owner]);
  const before = useRef(whose);
  if (before.current !== whose) {
    // Data that one key or owner has read must not be shown to another. It is removed before the pages ask for theirs.
    before.current = whose;
    client.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== 'me' && queryKey[0] !== 'login' });
  }

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
    return (
      <MeContext key={whose} value={me.data}>
        {children}
      </MeContext>
    );
  }
  const waiting = known ? me : login;
  if (owner !== null && asApiError(waiting.failureReason).status === 403) {
    const alone = () => actFor(null);
    return <Starting problem={waiting.failureReason} repeats={false} onRetry={alone} />; // refused for this owner: act for the owner of the key again
  }
  const again = () => void client.resetQueries({ queryKey: [known ? 'me' : 'login'] });
  return <Starting problem={waiting.failureReason} repeats={!waiting.isError} onRetry={again} />;
}
