import type { Schemas } from '../../api/client';
import { Link } from '../../app/Link';
import { paths } from '../../app/paths';

type Job = Pick<Schemas['JobSummary'], 'status' | 'blockedBy' | 'jobType' | 'queue'>;

/** BlockedBy explains in a few words why a job waits, with a link to what blocks it. */
export function BlockedBy({ job }: { job: Job }) {
  const [block] = job.blockedBy;
  if (block === undefined) {
    return <span className="muted">{job.status === 'RETRYING' ? 'runs again later' : 'waits for a free worker'}</span>;
  }
  const [kind = '', name = ''] = split(block.id);
  switch (block.kind) {
    case 'pause':
    case 'limit':
      return (
        <Link href={kind === 'queue' && name !== '*' ? paths.queue(name) : kind === 'type' && name !== '*' ? paths.type(name) : paths.controls()}>
          {block.kind === 'pause' ? 'is held by the pause of' : 'waits for the limit of'} {kind} {name}
        </Link>
      );
    case 'dependency':
      return <Link href={paths.job(block.id)}>waits for another job</Link>;
    case 'worker':
      return <Link href={paths.type(job.jobType)}>has no worker</Link>;
    case 'order':
      return <Link href={paths.jobs({ orderingKey: block.id })}>waits for its turn in {block.id}</Link>;
    default:
      return <span className="muted">waits for its turn</span>;
  }
}

function split(id: string): [string, string] {
  const at = id.indexOf(':');
  return [id.slice(0, at), id.slice(at + 1)];
}
