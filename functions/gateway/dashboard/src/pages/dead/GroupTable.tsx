import { Link } from '../../app/Link';
import { paths } from '../../app/paths';
import { Badge } from '../../ui/Badge';
import { Count } from '../../ui/Measure';
import { RelativeTime } from '../../ui/RelativeTime';
import { Sparkline } from '../../ui/Sparkline';
import { Table } from '../../ui/Table';
import { historyOf, jobsOf, keyOf, type Group } from './groups';

interface Props {
  groups: readonly Group[];
  ownerId: string;
  selected: ReadonlySet<string> | null; // null: the user may not act on them
  onSelect: (selected: Set<string>) => void;
}

/** GroupTable lists why jobs failed, with the number of jobs and the course of the last day. */
export function GroupTable({ groups, ownerId, selected, onSelect }: Props) {
  const all = selected !== null && groups.every((group) => selected.has(keyOf(group)));
  const toggle = (key: string) => {
    const next = new Set(selected);
    if (!next.delete(key)) {
      next.add(key);
    }
    onSelect(next);
  };
  return (
    <Table caption="Dead letters by job type and error code">
      <thead>
        <tr>
          {selected && (
            <th scope="col" className="check-cell">
              <input
                type="checkbox"
                aria-label="Select all groups that are shown"
                checked={all}
                ref={(box) => {
                  if (box) {
                    box.indeterminate = !all && selected.size > 0;
                  }
                }}
                onChange={() => onSelect(all ? new Set() : new Set(groups.map(keyOf)))}
              />
            </th>
          )}
          <th scope="col">Type · error code</th>
          <th scope="col">Last message</th>
          <th scope="col" className="number">
            Jobs
          </th>
          <th scope="col">24 h</th>
          <th scope="col">First · last</th>
        </tr>
      </thead>
      <tbody>
        {groups.map((group) => {
          const key = keyOf(group);
          const name = `${group.jobType} ${group.errorCode ?? 'without an error code'}`;
          return (
            <tr key={key} className="dead-row">
              {selected && (
                <td className="check-cell">
                  <input type="checkbox" aria-label={`Select ${name}`} checked={selected.has(key)} onChange={() => toggle(key)} />
                </td>
              )}
              <th scope="row" className="dead-name">
                <Link href={paths.type(group.jobType)} className="job-link">
                  {group.jobType}
                </Link>{' '}
                {group.errorCode === null ? <span className="muted">no error code</span> : <code className="dead-code">{group.errorCode}</code>}
                {group.new && (
                  <>
                    {' '}
                    <span title="Not seen before the last 24 hours">
                      <Badge tone="warn">new</Badge>
                    </span>
                  </>
                )}
              </th>
              <td className="dead-text">
                {group.example ? (
                  <Link href={paths.job(group.example.jobId)} className="dead-message" title={group.example.message}>
                    {group.example.message || 'no message'}
                  </Link>
                ) : (
                  <span className="muted">–</span>
                )}
              </td>
              <td className="number dead-count">
                <Link href={paths.jobs(jobsOf(group, ownerId))} aria-label={`The ${group.jobs} jobs of ${name}`}>
                  <Count n={group.jobs} />
                </Link>
              </td>
              <td className="dead-hours">
                <Sparkline values={group.hours} label={historyOf(group)} />
              </td>
              <td className="dead-times">
                <RelativeTime at={group.firstFailedAt} /> · <RelativeTime at={group.lastFailedAt} />
              </td>
            </tr>
          );
        })}
      </tbody>
    </Table>
  );
}
