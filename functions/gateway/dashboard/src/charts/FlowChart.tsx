import { useEffect, useRef, useState, type PointerEvent } from 'react';
import { compact } from '../format/number';
import { useTimes } from '../format/times';
import { columns, emptyUntil, labelEvery, ticks, timeLabel, wholeLabel, type Bucket } from './flowChart';
import './FlowChart.css';

const HEIGHT = 220;
const LEFT = 44;
const RIGHT = 52; // for the label of the last value
const TOP = 12;
const BOTTOM = 24;
const GAP = 1.5;

/** Mark is an event beside the jobs, such as the start of a version. */
export interface Mark {
  at: string;
  label: string;
}

interface Props {
  buckets: readonly Bucket[];
  seconds: number; // the length of a bucket
  marks?: readonly Mark[];
  label: string; // read by screen readers in place of the drawing
  onSelect: (from: string, until: string) => void; // the user has dragged over a span of time
}

/**
 * FlowChart shows how many jobs ended in each span of time as stacked bars, and how many were accepted as a line. It draws one bucket or
 * sixty, with tiny numbers visible beside large ones.
 */
export function FlowChart({ buckets, seconds, marks = [], label, onSelect }: Props) {
  useTimes();
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  const [hovered, setHovered] = useState<number>();
  const [dragged, setDragged] = useState<[number, number]>();

  useEffect(() => {
    const element = box.current;
    if (element === null) {
      return;
    }
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  const inner = Math.max(0, width - LEFT - RIGHT);
  const step = buckets.length > 0 ? inner / buckets.length : 0;
  const scale = ticks(Math.max(0, ...buckets.map(({ accepted, completed, failed, cancelled }) => Math.max(accepted, completed + failed + cancelled))));
  const top = scale.at(-1) ?? 1;
  const y = (n: number) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - n / top);
  const x = (i: number) => LEFT + i * step;
  const empty = emptyUntil(buckets);
  const last = buckets.at(-1);
  const shown = buckets[hovered ?? buckets.length - 1];

  const bucketAt = (event: PointerEvent) => {
    const left = box.current?.getBoundingClientRect().left ?? 0;
    return Math.max(0, Math.min(buckets.length - 1, Math.floor((event.clientX - left - LEFT) / step)));
  };
  const release = () => {
    if (dragged) {
      const [from, until] = [Math.min(...dragged), Math.max(...dragged)];
      const [first, end] = [buckets[from], buckets[until]];
      setDragged(undefined);
      if (first && end) {
        onSelect(first.at, new Date(Date.parse(end.at) + seconds * 1000).toISOString());
      }
    }
  };

  return (
    <div className="flow-chart">
      <p className="flow-readout small" aria-hidden="true">
        {shown && (
          <>
            <strong>{wholeLabel(shown.at, seconds)}</strong>
            <span className="flow-accepted">{compact(shown.accepted)} accepted</span>
            <span className="flow-completed">{compact(shown.completed)} completed</span>
            <span className="flow-failed">{compact(shown.failed)} failed</span>
            <span className="flow-cancelled">{compact(shown.cancelled)} cancelled</span>
          </>
        )}
      </p>
      <div
        ref={box}
        className="flow-box"
        role="img"
        aria-label={label}
        onPointerDown={(event) => {
          if (event.button === 0 && event.pointerType !== 'touch') { // a finger scrolls the page
            event.currentTarget.setPointerCapture(event.pointerId);
            const i = bucketAt(event);
            setDragged([i, i]);
          }
        }}
        onPointerMove={(event) => {
          const i = bucketAt(event);
          setHovered(i);
          setDragged((before) => before && [before[0], i]);
        }}
        onPointerUp={release}
        onPointerCancel={() => setDragged(undefined)}
        onPointerLeave={() => setHovered(undefined)}
      >
        {width > 0 && (
          <svg width={width} height={HEIGHT} aria-hidden="true">
            {scale.map((n) => (
              <g key={n}>
                <line className="flow-grid" x1={LEFT} x2={width - RIGHT} y1={y(n)} y2={y(n)} />
                <text className="flow-text" x={LEFT - 8} y={y(n) + 4} textAnchor="end">
                  {compact(n)}
                </text>
              </g>
            ))}
            {empty > 0 && (
              <>
                <rect className="flow-empty" x={LEFT} y={TOP} width={empty * step} height={HEIGHT - TOP - BOTTOM} />
                {empty * step > 130 && (
                  <text className="flow-text" x={LEFT + (empty * step) / 2} y={(HEIGHT - BOTTOM + TOP) / 2} textAnchor="middle">
                    {empty === buckets.length ? 'no jobs in this time' : `no data before ${timeLabel(buckets[empty]?.at ?? '', seconds)}`}
                  </text>
                )}
              </>
            )}
            {hovered !== undefined && <rect className="flow-hover" x={x(hovered)} y={TOP} width={step} height={HEIGHT - TOP - BOTTOM} />}
            {columns(buckets, top, HEIGHT - TOP - BOTTOM).map((column, i) =>
              column.map(({ name, from, height }) => (
                <rect
                  key={`${i} ${name}`}
                  className={`flow-bar-${name}`}
                  x={x(i) + Math.min(GAP, step / 4)}
                  width={Math.max(1, step - 2 * Math.min(GAP, step / 4))}
                  y={HEIGHT - BOTTOM - from - height}
                  height={height}
                />
              )),
            )}
            {empty < buckets.length && (
              <polyline
                className="flow-line"
                points={buckets.map((bucket, i) => (i < empty ? '' : `${x(i) + step / 2},${y(bucket.accepted)}`)).join(' ')}
              />
            )}
            {last && empty < buckets.length && (
              <>
                <circle className="flow-dot" cx={x(buckets.length - 0.5)} cy={y(last.accepted)} r={3} />
                <text className="flow-last" x={width - RIGHT + 6} y={y(last.accepted) + 4}>
                  {compact(last.accepted)}
                </text>
              </>
            )}
            {marks.map(({ at, label: text }) => {
              const first = Date.parse(buckets[0]?.at ?? '');
              const i = (Date.parse(at) - first) / (seconds * 1000);
              return (
                i >= 0 &&
                i <= buckets.length && (
                  <g key={`${at} ${text}`}>
                    <line className="flow-mark" x1={x(i)} x2={x(i)} y1={TOP} y2={HEIGHT - BOTTOM} />
                    <text className="flow-text" x={x(i)} y={TOP - 2} textAnchor="middle">
                      {text}
                    </text>
                  </g>
                )
              );
            })}
            {labelEvery(buckets.length, inner).map((i) => (
              <text key={i} className="flow-text" x={x(i) + step / 2} y={HEIGHT - 7} textAnchor="middle">
                {timeLabel(buckets[i]?.at ?? '', seconds)}
              </text>
            ))}
            {dragged && (
              <rect
                className="flow-drag"
                x={x(Math.min(...dragged))}
                y={TOP}
                width={(Math.abs(dragged[1] - dragged[0]) + 1) * step}
                height={HEIGHT - TOP - BOTTOM}
              />
            )}
          </svg>
        )}
      </div>
    </div>
  );
}
