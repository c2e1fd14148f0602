import { useLive } from '../live/live';
import { ErrorBox } from '../ui/ErrorBox';
import { Skeleton } from '../ui/Skeleton';
import { MissingPart } from './loading';
import { PageHeader } from './PageHeader';

/** Opening is shown while the code of a page is loaded. */
export function Opening({ title }: { title: string }) {
  const { failingSince, slowedUntil } = useLive();
  return (
    <>
      <PageHeader title={title} />
      {failingSince && <p role="status">The gateway does not answer. This page opens by itself when it does.</p>}
      {slowedUntil && <p role="status">The gateway limits requests. This page opens by itself in a moment.</p>}
      <Skeleton lines={8} />
    </>
  );
}

interface Props {
  title: string;
  error: unknown;
  onRetry: () => void;
}

/** PageBroke is shown for a page that cannot be loaded or rendered. */
export function PageBroke({ title, error, onRetry }: Props) {
  const missing = error instanceof MissingPart;
  return (
    <>
      <PageHeader title={title} />
      <ErrorBox
        error={error}
        title={missing ? 'This page cannot be loaded' : 'This page failed'}
        advice={
          missing
            ? 'The gateway may be in the middle of an upgrade. Reload the page in a moment.'
            : 'Try again. If the error persists, reload the page, and report what you did before.'
        }
        retryLabel={missing ? 'Reload the page' : 'Try again'}
        onRetry={missing ? () => location.reload() : onRetry}
      />
    </>
  );
}
