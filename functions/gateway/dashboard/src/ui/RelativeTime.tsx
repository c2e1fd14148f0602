import { instant, relative } from '../format/time';
import { useNow } from './now';

/** RelativeTime shows how long ago or ahead an instant is, with the instant in the tooltip. */
export function RelativeTime({ at }: { at: string | null }) {
  const now = useNow();
  if (at === null) {
    return <span className="muted">–</span>;
  }
  return (
    <time className="tabular" dateTime={at} title={instant(at)}>
      {relative(at, now)}
    </time>
  );
}
