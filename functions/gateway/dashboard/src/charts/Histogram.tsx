import type { Schemas } from '../api/client';
import { count, plural } from '../format/number';
import { duration } from '../format/time';
import './Histogram.css';

interface Props {
  name: string; // of what was measured
  bars: readonly Schemas['HistogramBar'][];
}

/** Histogram shows how many jobs took how long; each bar ends at twice the time of the one before. */
export function Histogram({ name, bars }: Props) {
  const most = Math.max(1, ...bars.map(({ jobs }) => jobs));
  const [first, last] = [bars[0], bars.at(-1)];
  if (!first || !last) {
    return null;
  }
  const label = `${name}: ${bars.filter(({ jobs }) => jobs > 0).map(({ upToMs, jobs }) => `${count(jobs)} up to ${duration(upToMs)}`).join(', ')}`;
  return (
    <figure className="histogram">
      <figcaption className="small muted">{name}</figcaption>
      <div className="histogram-bars" role="img" aria-label={label}>
        {bars.map(({ upToMs, jobs }) => (
          <span key={upToMs} className="histogram-slot" title={`${plural(jobs, 'job')} took ${duration(upToMs / 2)} to ${duration(upToMs)}`}>
            {jobs > 0 && <span className="histogram-bar" style={{ height: `max(3px, ${(jobs / most) * 100}%)` }} />}
          </span>
        ))}
      </div>
      <div className="histogram-ends small muted" aria-hidden="true">
        <span>up to {duration(first.upToMs)}</span>
        {bars.length > 1 && <span>up to {duration(last.upToMs)}</span>}
      </div>
    </figure>
  );
}
