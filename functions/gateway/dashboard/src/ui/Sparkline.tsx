import './Sparkline.css';

const BAR = 4;
const HEIGHT = 20;
const LEAST = 2; // also one among thousands is visible

interface Props {
  values: readonly number[];
  label: string; // read by screen readers in place of the drawing
}

/** Sparkline shows how a number went, a bar for each span of time. */
export function Sparkline({ values, label }: Props) {
  const most = Math.max(1, ...values);
  return (
    <svg className="sparkline" role="img" aria-label={label} viewBox={`0 0 ${values.length * BAR} ${HEIGHT}`}>
      <title>{label}</title>
      <rect className="sparkline-base" x={0} y={HEIGHT - 1} width={values.length * BAR} height={1} />
      {values.map((value, i) => {
        const height = value === 0 ? 0 : Math.max(LEAST, (value / most) * HEIGHT);
        return height > 0 && <rect key={i} x={i * BAR} y={HEIGHT - height} width={BAR - 1} height={height} />;
      })}
    </svg>
  );
}
