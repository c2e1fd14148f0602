import { instant, moment, relative } from '../format/time';
import { useTimes } from '../format/times';
import { useNow } from './now';

/** RelativeTime shows an instant as the user has chosen: how long ago or ahead it is, or its date and time. The tooltip has both. */
export function RelativeTime({ at }: { at: string | null }) {
  const now = useNow();
  const times = useTimes();
  if (at === null) {
    return <span className="muted">–</span>;
  }
  const distance = relative(at, now);
  return (
    <time className="tabular" dateTime={at} title={`${instant(at)}, ${distance}`}>
      {times === 'relative' ? distance : moment(at, now)}
    </time>
  );
}
