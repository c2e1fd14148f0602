import { useLayoutEffect, useMemo, useRef, useState, type KeyboardEvent, type PointerEvent } from 'react';
import { Link } from '../../app/Link';
import { paths } from '../../app/paths';
import { count } from '../../format/number';
import { duration } from '../../format/time';
import { Badge } from '../../ui/Badge';
import { IconButton } from '../../ui/Button';
import { StatusBadge } from '../../ui/StatusBadge';
import { isOn } from './failure';
import { type Layout, layout } from './layout';
import { type GraphEdge, type GraphNode, type Nodes, progressText } from './nodes';
import type { Summary } from './queries';
import './Graph.css';

interface Props {
  flowId: string;
  made: Nodes;
  known: ReadonlyMap<string, Summary>;
  chosen: string | null; // the name of a job
  way: ReadonlySet<string>; // to the first failure
  onChoose: (node: GraphNode) => void;
}

/** Measures of one direction, in pixels. Along is from layer to layer. */
interface Measures {
  down: boolean;
  width: number; // of a node
  height: number;
  along: number;
  across: number;
}

const RIGHT: Measures = { down: false, width: 200, height: 84, along: 270, across: 104 };
const DOWN: Measures = { down: true, width: 176, height: 84, along: 136, across: 196 };

const EDGE = 8; // around the graph, in its box
const LEAST = 0.35; // the scale below which the graph is wider than its box
const MOST = 2;
const LEGIBLE = 0.75;
const STEP = 1.25;
const PAN = 80; // pixels a key

/** Graph draws the jobs of a flow, each behind those that it waits for: to the right, or down where that fits better. */
export function Graph({ flowId, made, known, chosen, way, onChoose }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const laid = useMemo(() => layout(made), [made]);
  const width = useWidth(box);
  const [turned, setTurned] = useState<boolean | null>(null); // null: as it fits
  const [zoom, setZoom] = useState<number | null>(null); // null: as it fits
  const measures = (turned ?? fitsDown(laid, width)) ? DOWN : RIGHT;
  const size = sizeOf(laid, measures);
  const scale = zoom ?? fit(size.width, width);
  const pan = usePan(box);

  const zoomTo = (to: number | null) => {
    const element = box.current;
    const next = to === null ? fit(size.width, width) : Math.min(MOST, Math.max(LEAST, to));
    if (element) {
      // what is in the middle stays there
      const ratio = next / scale;
      const [left, top] = [element.scrollLeft + element.clientWidth / 2, element.scrollTop + element.clientHeight / 2];
      requestAnimationFrame(() => element.scrollTo(left * ratio - element.clientWidth / 2, top * ratio - element.clientHeight / 2));
    }
    setZoom(to === null ? null : next);
  };
  useWheel(box, (up) => zoomTo(up ? scale * 1.1 : scale / 1.1));
  const press = (event: KeyboardEvent) => {
    const moves: Record<string, [number, number]> = { ArrowLeft: [-PAN, 0], ArrowRight: [PAN, 0], ArrowUp: [0, -PAN], ArrowDown: [0, PAN] };
    const move = moves[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) {
      return;
    } else if (move && event.target === box.current) {
      box.current?.scrollBy(...move);
    } else if (event.key === '+' || event.key === '-') {
      zoomTo(event.key === '+' ? scale * STEP : scale / STEP);
    } else if (event.key === '0') {
      zoomTo(null);
    } else {
      return;
    }
    event.preventDefault();
  };

  return (
    <>
      <div className="graph-tools">
        <IconButton icon="minus" label="Smaller (-)" disabled={scale <= LEAST} onClick={() => zoomTo(scale / STEP)} />
        <output className="small tabular" aria-label="Size of the graph">
          {Math.round(scale * 100)} %
        </output>
        <IconButton icon="new" label="Larger (+)" disabled={scale >= MOST} onClick={() => zoomTo(scale * STEP)} />
        <IconButton icon="fit" label="Fit to the width (0)" onClick={() => zoomTo(null)} />
        <IconButton icon="turn" label={measures.down ? 'Draw it to the right' : 'Draw it down'} onClick={() => setTurned(!measures.down)} />
        <span className="small muted graph-hint">{made.edges.length > 0 && 'A line without a word: completed'}</span>
      </div>
      <div
        ref={box}
        className={`graph-scroll ${scale < 0.6 ? 'graph-far' : ''}`}
        tabIndex={0}
        role="region"
        aria-label="Graph of the flow"
        onKeyDown={press}
        {...pan}
      >
        <div style={{ width: size.width * scale, height: size.height * scale }}>
          <div className="graph" style={{ ...size, transform: `scale(${scale})` }}>
            <Lines laid={laid} measures={measures} size={size} way={way} />
            <ol>
              {made.nodes.map((node) => (
                <Node key={node.key} node={node} known={known} at={placeOf(laid, node, measures)} measures={measures} chosen={chosen} way={way} onChoose={onChoose} />
              ))}
            </ol>
          </div>
        </div>
      </div>
      {made.hidden > 0 && (
        <p className="small muted">
          {count(made.hidden)} further jobs are not drawn. <Link href={paths.jobs({ batchId: flowId })}>All jobs</Link>
        </p>
      )}
    </>
  );
}

function useWidth(box: { current: HTMLElement | null }): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) {
      return;
    }
    const look = () => setWidth(element.clientWidth - 2 * EDGE);
    const observer = new ResizeObserver(look);
    observer.observe(element);
    look();
    return () => observer.disconnect();
  }, [box]);
  return width;
}

/** useWheel calls zoom for the wheel with Ctrl, which is also how browsers report two fingers on a touchpad. */
function useWheel(box: { current: HTMLElement | null }, zoom: (up: boolean) => void) {
  const latest = useRef(zoom);
  useLayoutEffect(() => {
    latest.current = zoom;
  });
  useLayoutEffect(() => {
    const element = box.current;
    const turn = (event: WheelEvent) => {
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault(); // of the whole page
        latest.current(event.deltaY < 0);
      }
    };
    element?.addEventListener('wheel', turn, { passive: false });
    return () => element?.removeEventListener('wheel', turn);
  }, [box]);
}

/** usePan moves the graph with the mouse; a finger scrolls it, as any part of a page. */
function usePan(box: { current: HTMLElement | null }) {
  const from = useRef<{ x: number; y: number } | null>(null);
  return {
    onPointerDown: (event: PointerEvent) => {
      const onNode = event.target instanceof Element && event.target.closest('button') !== null;
      from.current = event.pointerType === 'mouse' && event.button === 0 && !onNode ? { x: event.clientX, y: event.clientY } : null;
    },
    onPointerMove: (event: PointerEvent) => {
      if (from.current && event.buttons === 1) {
        box.current?.scrollBy(from.current.x - event.clientX, from.current.y - event.clientY);
        from.current = { x: event.clientX, y: event.clientY };
      }
    },
    onPointerUp: () => (from.current = null),
  };
}

function sizeOf({ layers, across }: Layout, { down, along, across: each, width, height }: Measures) {
  const long = Math.max(0, layers - 1) * along + (down ? height : width);
  return down ? { width: across * each, height: long } : { width: long, height: across * each };
}

const fit = (needed: number, width: number) => (width === 0 || needed === 0 ? 1 : Math.min(1, Math.max(LEAST, width / needed)));

function fitsDown(laid: Layout, width: number): boolean {
  const right = fit(sizeOf(laid, RIGHT).width, width);
  return right < LEGIBLE && fit(sizeOf(laid, DOWN).width, width) > right;
}

interface Point {
  x: number;
  y: number;
}

function point({ layer, across }: { layer: number; across: number }, { down, along, across: each, width, height }: Measures): Point {
  return down ? { x: across * each, y: layer * along + height / 2 } : { x: layer * along + width / 2, y: across * each };
}

const placeOf = (laid: Layout, node: GraphNode, measures: Measures): Point =>
  point(laid.places.get(node) ?? { layer: node.layer, across: 0 }, measures);

function Lines({ laid, measures, size, way }: { laid: Layout; measures: Measures; size: { width: number; height: number }; way: ReadonlySet<string> }) {
  const keyOf = ({ from, to, on }: GraphEdge) => `${from.key} ${to.key} ${on}`;
  return (
    <>
      <svg width={size.width} height={size.height} aria-hidden="true" focusable="false">
        {laid.ways.map(({ edge, through }) => (
          <path
            key={keyOf(edge)}
            className={`graph-edge graph-edge-${edge.on} ${isOn(way, edge.from) && isOn(way, edge.to) ? 'graph-edge-way' : ''}`}
            d={line([placeOf(laid, edge.from, measures), ...through.map((place) => point(place, measures)), placeOf(laid, edge.to, measures)], measures)}
          />
        ))}
      </svg>
      {laid.ways.filter(({ edge }) => edge.on !== 'completed').map(({ edge }) => {
        const end = placeOf(laid, edge.to, measures);
        const back = (measures.along - (measures.down ? measures.height : measures.width)) / 2 + (measures.down ? measures.height : measures.width) / 2;
        const at = measures.down ? { left: end.x, top: end.y - back } : { left: end.x - back, top: end.y };
        return (
          <span key={keyOf(edge)} className="graph-condition" style={at} aria-hidden="true">
            {edge.on}
          </span>
        );
      })}
    </>
  );
}

/** line goes from the end of the first node through the middle of each place to the start of the last one. */
function line(points: readonly Point[], { down, width, height, along }: Measures): string {
  const half = (down ? height : width) / 2;
  const bend = along - 2 * half;
  const moved = ({ x, y }: Point, by: number) => (down ? { x, y: y + by } : { x: x + by, y });
  const text = ({ x, y }: Point) => `${x} ${y}`;
  const steps = points.slice(1).map((to, i) => {
    const [start, end] = [moved(points[i] ?? to, half), moved(to, -half)];
    const straight = i < points.length - 2 ? `L${text(moved(to, half))}` : '';
    return `C${text(moved(start, bend / 2))} ${text(moved(end, -bend / 2))} ${text(end)}${straight}`;
  });
  const [first] = points;
  return first ? `M${text(moved(first, half))}${steps.join('')}` : '';
}

interface NodeProps extends Pick<Props, 'known' | 'chosen' | 'way' | 'onChoose'> {
  node: GraphNode;
  at: Point;
  measures: Measures;
}

function Node({ node, known, at, measures: { width, height }, chosen, way, onChoose }: NodeProps) {
  const [job] = node.jobs;
  const isFailed = (node.counts.FAILED ?? 0) > 0;
  const isNever = node.counts.CANCELLED === node.jobs.length;
  const isChosen = chosen !== null && node.names.includes(chosen);
  const classes = ['graph-node', isFailed ? 'graph-failed' : '', isNever ? 'graph-never' : '', isOn(way, node) ? 'graph-way' : '', isChosen ? 'graph-chosen' : ''];
  return (
    <li className={classes.join(' ')} style={{ left: at.x - width / 2, top: at.y - height / 2, width, height }}>
      <button type="button" aria-pressed={isChosen} onClick={() => onChoose(node)} title={node.name}>
        <span className="graph-name">{node.name}</span>
        <span className="graph-type">
          {node.jobs.length > 1 && `${count(node.jobs.length)} × `}
          {job?.jobType}
          {job?.forEach && ', for each element'}
        </span>
        <span className="graph-state">{node.jobs.length > 1 ? <strong>{progressText(node.counts, node.jobs.length)}</strong> : <State node={node} known={known} />}</span>
      </button>
      <span className="visually-hidden">{waits(node)}</span>
    </li>
  );
}

function State({ node: { jobs: [job] }, known }: { node: GraphNode; known: ReadonlyMap<string, Summary> }) {
  const summary = known.get(job?.jobId ?? '');
  const ran = summary?.startedAt && summary.finishedAt ? Date.parse(summary.finishedAt) - Date.parse(summary.startedAt) : null;
  return (
    <>
      {job?.status ? <StatusBadge status={job.status} /> : <Badge>deleted</Badge>}
      {job?.elements ? (
        <span className="small tabular">
          {progressText(job.elements.counts ?? {}, job.elements.total)}
          <span className="visually-hidden"> elements</span>
        </span>
      ) : (
        ran !== null && <span className="small tabular graph-ran">{duration(ran)}</span>
      )}
    </>
  );
}

/** waits returns in words what the lines show. */
function waits({ jobs: [job] }: GraphNode): string {
  const after = job?.after.slice(0, 10).map(({ name, jobId, on }) => `${name ?? jobId} ${on}`) ?? [];
  return after.length === 0 ? '' : `, after ${after.join(', ')}${(job?.after.length ?? 0) > 10 ? ' and more' : ''}`;
}
