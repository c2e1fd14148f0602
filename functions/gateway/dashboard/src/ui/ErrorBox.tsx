import { advice as adviceFor, asApiError } from '../api/error';
import { Button } from './Button';
import { CopyButton } from './CopyButton';
import './ErrorBox.css';

interface Props {
  error: unknown;
  title?: string;
  advice?: string; // replaces the advice for the status of the error
  retryLabel?: string;
  onRetry?: () => void;
}

/** ErrorBox shows an error, what to do about it, and its trace id in the logs. */
export function ErrorBox({ error, title = 'That did not work', advice, retryLabel = 'Try again', onRetry }: Props) {
  const problem = asApiError(error);
  return (
    <div className="error-box" role="alert">
      <h2 className="error-title">{title}</h2>
      <p className="error-message">
        {problem.message} <code>{problem.code}</code>
      </p>
      {problem.details.length > 0 && (
        <ul className="error-details">
          {problem.details.map((detail, i) => (
            <li key={i}>
              <code>{detail.path || 'the body'}</code> {detail.message}
            </li>
          ))}
        </ul>
      )}
      <p>{advice ?? adviceFor(problem)}</p>
      <div className="row-wrap">
        {onRetry && problem.status !== 404 && (
          <Button small icon="retry" onClick={onRetry}>
            {retryLabel}
          </Button>
        )}
        {problem.traceId && (
          <span className="small">
            trace id <code>{problem.traceId}</code> <CopyButton text={problem.traceId} label="Copy the trace id" />
          </span>
        )}
      </div>
    </div>
  );
}
