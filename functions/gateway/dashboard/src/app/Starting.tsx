import { useEffect, useState } from 'react';
import { asApiError } from '../api/error';
import { duration } from '../format/time';
import { Button } from '../ui/Button';
import { ErrorBox } from '../ui/ErrorBox';
import { useNow } from '../ui/now';
import { Logo } from './Logo';
import './Starting.css';

const SLOW_MS = 3000;

interface Props {
  problem: unknown; // the error of the last request; null: none has failed yet
  repeats: boolean; // whether the request is repeated without a click
  onRetry: () => void;
}

/** Starting is shown until the dashboard knows its user: it shows what it waits for, or the error. */
export function Starting({ problem, repeats, onRetry }: Props) {
  useEffect(() => {
    document.title = 'JobWeaver';
  }, []);

  return (
    <main className="starting">
      <div className="starting-head">
        <Logo />
        <h1>{problem === null ? 'Connecting to JobWeaver' : 'JobWeaver cannot be shown yet'}</h1>
      </div>
      {problem === null ? (
        <Waits onRetry={onRetry} />
      ) : (
        <>
          <ErrorBox error={problem} title={titleOf(problem)} onRetry={onRetry} />
          {repeats && <p className="muted">This page asks again every few seconds, and opens when the gateway answers.</p>}
        </>
      )}
    </main>
  );
}

function titleOf(problem: unknown): string {
  const { status } = asApiError(problem);
  return status === 0 ? 'The gateway does not answer' : status >= 500 ? 'The gateway is not ready' : 'The gateway refused the request';
}

function Waits({ onRetry }: { onRetry: () => void }) {
  const [since] = useState(() => Date.now());
  const waited = useNow().getTime() - since;
  return (
    <>
      <p role="status">The dashboard asks the gateway who you are.</p>
      {waited > SLOW_MS && (
        <div className="row-wrap">
          <p>No answer for {duration(Math.floor(waited / 1000) * 1000)}.</p>
          <Button small icon="retry" onClick={onRetry}>
            Try again
          </Button>
        </div>
      )}
    </>
  );
}
