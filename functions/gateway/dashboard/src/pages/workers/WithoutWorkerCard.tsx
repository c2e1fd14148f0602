import '../overview/Overview.css';
import type { Schemas } from '../../api/client';
import { Link } from '../../app/Link';
import { paths } from '../../app/paths';
import { plural } from '../../format/number';
import { Card } from '../../ui/Card';

const SHOWN = 20;

/** WithoutWorkerCard lists the job types of which jobs wait and that no live worker of their queue runs. */
export function WithoutWorkerCard({ types }: { types: readonly Schemas['TypeWithoutWorker'][] }) {
  if (types.length === 0) {
    return null;
  }
  return (
    <Card title="Without a worker">
      <p className="muted">
        No live worker of the queue runs these job types. Their jobs hold up no others, and start when a worker of the type is there.
      </p>
      <ul className="controls-list">
        {types.slice(0, SHOWN).map(({ queue, jobType, jobs }) => (
          <li key={`${queue} ${jobType}`}>
            <span>
              <Link href={paths.type(jobType)}>{jobType}</Link> in <Link href={paths.queue(queue)}>{queue}</Link>
            </span>
            <Link href={paths.jobs({ status: 'PENDING', type: jobType, queue })} className="control-paused">
              {plural(jobs, 'job')}
            </Link>
          </li>
        ))}
      </ul>
      {types.length > SHOWN && <p className="muted">and {plural(types.length - SHOWN, 'further type')}</p>}
    </Card>
  );
}
