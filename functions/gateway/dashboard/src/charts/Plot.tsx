import { useEffect, useRef } from 'react';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { useDark } from '../app/theme';
import { useTimes } from '../format/times';
import { plotOptions, type PlotSpec } from './options';
import './Plot.css';

interface Props extends PlotSpec {
  data: uPlot.AlignedData;
  label: string; // read by screen readers in place of the drawing
}

/** Plot draws series over time. It is as wide as its container, and is redrawn when the theme, the time zone or the series change. */
export function Plot({ data, label, ...spec }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(null);
  const latest = useRef(data);
  latest.current = data;
  const dark = useDark();
  const times = useTimes();
  const identity = JSON.stringify([spec, dark, times]);

  useEffect(() => {
    const element = box.current;
    if (element === null) {
      return;
    }
    const drawn = new uPlot(plotOptions(spec, element), latest.current, element);
    plot.current = drawn;
    const observer = new ResizeObserver(() => drawn.setSize({ width: element.clientWidth, height: spec.height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      drawn.destroy();
      plot.current = null;
    };
    // identity represents the content of spec
  }, [identity]);

  useEffect(() => plot.current?.setData(data), [data]);

  return <div ref={box} className="plot" role="img" aria-label={label} />;
}
