import { count, compact } from '../format/number';
import { duration } from '../format/time';

/** Count shows a number, shortened if it is long, with all its digits in the tooltip. */
export function Count({ n }: { n: number }) {
  return (
    <span className="tabular" title={count(n)}>
      {compact(n)}
    </span>
  );
}

/** Duration shows milliseconds in the units that people use; null as a dash. */
export function Duration({ ms }: { ms: number | null }) {
  if (ms === null) {
    return <span className="muted">–</span>;
  }
  return (
    <span className="tabular" title={`${count(ms)} ms`}>
      {duration(ms)}
    </span>
  );
}
