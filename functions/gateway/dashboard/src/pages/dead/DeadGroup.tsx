import { useMay } from '../../api/me';
import { Link } from '../../app/Link';
import { paths } from '../../app/paths';
import { plural } from '../../format/number';
import { Button } from '../../ui/Button';
import { Card } from '../../ui/Card';
import { RelativeTime } from '../../ui/RelativeTime';
import { filterOf, type Group } from './groups';

interface Props {
  group: Group;
  complete: boolean; // all dead letters are loaded, so the number is complete
  onCommand: (command: 'retry' | 'delete') => void;
}

/** DeadGroup shows the failures of one kind: their number, an example, and the commands for all of them. */
export function DeadGroup({ group, complete, onCommand }: Props) {
  const may = useMay();
  const { jobType, errorCode, jobIds, example } = group;

  return (
    <Card>
      <div className="dead-group">
        <div className="grow stack">
          <h2>
            {jobType} <code className="dead-code">{errorCode ?? 'no error code'}</code>
          </h2>
          <p className="dead-message">{example.lastError?.message}</p>
          <p className="small muted row-wrap">
            <Link href={paths.jobs(filterOf(group))}>
              {plural(jobIds.length, 'job')}
              {!complete && ' or more'}
            </Link>
            <span>
              last failure <RelativeTime at={example.finishedAt ?? example.updatedAt} />:{' '}
              <Link href={paths.job(example.jobId)} className="mono">
                {example.jobId}
              </Link>
            </span>
          </p>
        </div>
        {may('operate') && (
          <div className="row-wrap">
            <Button icon="retry" onClick={() => onCommand('retry')}>
              Redrive all
            </Button>
            <Button variant="danger" icon="trash" onClick={() => onCommand('delete')}>
              Delete all
            </Button>
          </div>
        )}
      </div>
    </Card>
  );
}
