import { useQuery } from '@tanstack/react-query';
import { healthQuery } from '../../api/queries';
import { relative } from '../../format/time';
import { useLive, usePolling } from '../../live/live';
import { useNow } from '../../ui/now';

/** HealthStrip shows whether the database and the broker answer. */
export function HealthStrip() {
  const health = useQuery({ ...healthQuery, refetchInterval: usePolling(5000) });
  if (!health.data) {
    return null;
  }
  const { db, kafka } = health.data.components;
  return (
    <ul className="health" aria-label="Health">
      <Component name="Database" up={db.status === 'UP'} consequence="nothing can be accepted or read" />
      <Component name="Broker" up={kafka.status === 'UP'} consequence="jobs are accepted, and run when it is back" />
    </ul>
  );
}

interface ComponentProps {
  name: string;
  up: boolean;
  consequence: string;
}

function Component({ name, up, consequence }: ComponentProps) {
  const { failingSince } = useLive();
  const now = useNow();
  if (failingSince) {
    return (
      <li className="health-unknown">
        <span className="health-dot" aria-hidden="true" />
        {name} unknown since {relative(failingSince, now)}
      </li>
    );
  }
  return (
    <li className={up ? 'health-up' : 'health-down'}>
      <span className="health-dot" aria-hidden="true" />
      {name} {up ? 'answers' : `does not answer: ${consequence}`}
    </li>
  );
}
