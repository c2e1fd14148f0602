import { Link } from '../../app/Link';
import { count } from '../../format/number';

export interface Bar {
  name: string;
  n: number;
  note?: string;
  href: string;
}

/** Bars shows a ranking: names with their numbers, and a bar in proportion to the longest. */
export function Bars({ title, bars }: { title: string; bars: readonly Bar[] }) {
  const longest = Math.max(...bars.map((bar) => bar.n));
  return (
    <div>
      <h3 className="bars-title">{title}</h3>
      <ul className="bars">
        {bars.map((bar) => (
          <li key={bar.name}>
            <Link href={bar.href}>
              <span className="bars-name">
                {bar.name}
                {bar.note && <span className="row-note">{bar.note}</span>}
              </span>
              <span className="tabular">{count(bar.n)}</span>
            </Link>
            <span className="bars-bar" style={{ width: `${(bar.n / longest) * 100}%` }} aria-hidden="true" />
          </li>
        ))}
      </ul>
    </div>
  );
}
