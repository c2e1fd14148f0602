import type uPlot from 'uplot';
import { compact } from '../format/number';
import { duration, zoned } from '../format/time';
import { times } from '../format/times';

export type Unit = 'count' | 'ms';

export interface Series {
  label: string;
  color: string; // the name of a token: --failed
}

export interface PlotSpec {
  series: readonly Series[];
  height: number;
  unit: Unit;
}

const show: Record<Unit, (value: number) => string> = { count: compact, ms: duration };
const hour = zoned({ hour: '2-digit', minute: '2-digit' });
const day = zoned({ day: 'numeric', month: 'short' });
const moment = (at: Date) => `${day(at)}, ${hour(at)}`;
const DAY_SECONDS = 86_400;

/** plotOptions resolves the colours of tokens at the place of the plot, because a canvas has no custom properties. */
export function plotOptions(spec: PlotSpec, place: HTMLElement): uPlot.Options {
  const color = (token: string) => resolve(place, token);
  const axis: uPlot.Axis = {
    stroke: color('--muted'),
    font: '11px system-ui, sans-serif',
    grid: { stroke: color('--line'), width: 1 },
    ticks: { show: false },
  };
  return {
    tzDate: (at) => (times() === 'utc' ? utcDate(at) : new Date(at * 1000)), // an axis begins its days at midnight
    width: place.clientWidth,
    height: spec.height,
    padding: [10, 20, 0, 0], // at the right, for half of the last label
    cursor: { y: false, points: { size: 7 }, drag: { setScale: false } },
    scales: { y: { range: (_plot, _min, max) => [0, max > 0 ? max * 1.1 : 1] } },
    axes: [
      { ...axis, size: 26, grid: { show: false }, values: timeLabels },
      { ...axis, size: 56, values: (_plot, values) => values.map((value) => show[spec.unit](value)), incrs: increments(spec.unit) },
    ],
    series: [
      { label: 'Time', value: (_plot, at) => (at === null ? '–' : moment(new Date(at * 1000))) },
      ...spec.series.map(
        (series): uPlot.Series => ({
          label: series.label,
          stroke: color(series.color),
          width: 2,
          points: { show: false },
          value: (_plot, value) => (value === null ? '–' : show[spec.unit](value)),
        }),
      ),
    ],
  };
}

/** utcDate returns the date whose local fields are those of an instant in UTC. */
function utcDate(at: number): Date {
  const date = new Date(at * 1000);
  return new Date(date.getTime() + date.getTimezoneOffset() * 60_000);
}

function timeLabels(_plot: uPlot, seconds: number[], _axis: number, _space: number, increment: number): string[] {
  const format = increment >= DAY_SECONDS ? day : hour;
  return seconds.map((at) => format(new Date(at * 1000)));
}

/** increments returns the steps of an axis; jobs have only whole numbers. */
function increments(unit: Unit): number[] {
  const steps = [1, 2, 5].flatMap((digit) => Array.from({ length: 10 }, (_, power) => digit * 10 ** power));
  return (unit === 'count' ? steps : [...steps, 0.1, 0.2, 0.5]).sort((a, b) => a - b);
}

function resolve(place: HTMLElement, token: string): string {
  const probe = document.createElement('span');
  probe.style.color = `var(${token})`;
  place.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
