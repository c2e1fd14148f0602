import { duration, instant } from '../../format/time';
import { useNow } from '../../ui/now';
import type { Job } from './queries';
import { SPAN_NAMES, spansOf, type SpanKind } from './timeline';

/** Timeline shows when the job waited and when it ran, one line for each span, like a trace view. */
export function Timeline({ job }: { job: Job }) {
  const now = useNow();
  const spans = spansOf(job, now.getTime());
  const start = Math.min(...spans.map((span) => span.from));
  const whole = Math.max(...spans.map((span) => span.to)) - start || 1;
  const kinds = [...new Set(spans.map((span) => span.kind))];

  if (spans.length === 0) {
    return <p className="muted">Nothing has happened yet.</p>;
  }
  return (
    <>
      <ol className="timeline">
        {spans.map((span, i) => (
          <li key={i} title={`${instant(new Date(span.from))} to ${span.open ? 'now' : instant(new Date(span.to))}`}>
            <span className="timeline-name">
              {span.kind === 'scheduled' ? '' : `#${span.attempt} `}
              {SPAN_NAMES[span.kind]}
              {span.note && <span className="muted"> {span.note}</span>}
            </span>
            <span className="timeline-track" aria-hidden="true">
              <span
                className={`timeline-bar span-${span.kind} ${span.open ? 'span-open' : ''}`}
                style={{ left: `min(${((span.from - start) / whole) * 100}%, 100% - 3px)`, width: `${((span.to - span.from) / whole) * 100}%` }}
              />
            </span>
            <span className="timeline-length tabular">{span.to === span.from && !span.open ? '<1 ms' : duration(span.to - span.from)}</span>
          </li>
        ))}
      </ol>
      <p className="small muted row-wrap timeline-total">
        {duration(whole)} in all
        {kinds.map((kind) => (
          <Legend key={kind} kind={kind} />
        ))}
      </p>
    </>
  );
}

function Legend({ kind }: { kind: SpanKind }) {
  return (
    <span className="row">
      <span className={`legend-mark span-${kind}`} aria-hidden="true" /> {SPAN_NAMES[kind]}
    </span>
  );
}
