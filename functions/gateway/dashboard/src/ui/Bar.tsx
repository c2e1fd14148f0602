import type { Status } from './StatusBadge';
import './Bar.css';

interface Props {
  label: string;
  value: number;
  max: number;
  tone?: Status; // whose colour it has
}

/** Bar shows which part of a whole is done or taken. */
export function Bar({ label, value, max, tone }: Props) {
  return <progress className={tone ? `bar bar-toned status-${tone.toLowerCase()}` : 'bar'} aria-label={label} value={Math.min(value, max)} max={Math.max(max, 1)} />;
}
