import { useQuery } from '@tanstack/react-query';
import { controlsQuery } from '../../api/queries';
import type { Schemas } from '../../api/client';
import { Link } from '../../app/Link';
import { paths } from '../../app/paths';
import { usePolling } from '../../live/live';
import { Card } from '../../ui/Card';

/** ControlsCard lists what is paused or limited. */
export function ControlsCard() {
  const controls = useQuery({ ...controlsQuery, refetchInterval: usePolling(10_000) });
  if (!controls.data) {
    return null;
  }
  const holding = controls.data.controls.filter((c) => c.paused || c.maxRunning !== null || c.startsPerSecond !== null);
  return (
    <Card title="Paused or limited" aside={<Link href={paths.controls()}>Change</Link>}>
      {holding.length === 0 ? (
        <p className="muted">Nothing. A pause or a limit of a queue, a job type or an owner is shown here.</p>
      ) : (
        <ul className="controls-list">
          {holding.map((control) => (
            <li key={`${control.kind}:${control.name}`}>
              <Link href={pageOf(control)}>
                {control.kind} {control.name}
              </Link>
              <span className={control.paused ? 'control-paused' : 'muted'}>{description(control)}</span>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

function pageOf({ kind, name }: Schemas['Control']): string {
  if (kind === 'owner') {
    return paths.jobs({ status: ['SCHEDULED', 'PENDING', 'RETRYING'], ownerId: name });
  }
  return kind === 'fairnessKey' || name === '*' ? paths.controls() : paths[kind](name);
}

function description({ paused, maxRunning, startsPerSecond, weight }: Schemas['Control']): string {
  const limits = [
    paused ? 'paused' : '',
    maxRunning === null ? '' : `at most ${maxRunning} at once`,
    startsPerSecond === null ? '' : `${startsPerSecond} starts/s`,
    weight === null ? '' : `weight ${weight}`,
  ];
  return limits.filter(Boolean).join(', ');
}
