import type { Schemas } from '../../api/client';
import { Link } from '../../app/Link';
import { paths } from '../../app/paths';
import { Count } from '../../ui/Measure';
import { STATUSES } from '../../ui/StatusBadge';
import { Table } from '../../ui/Table';

interface Props {
  by: 'queue' | 'type';
  rows: readonly { name: string; jobs: Schemas['JobCounts'] }[];
  filter?: Record<string, string>; // of the jobs that are counted
}

/** CountsTable shows the counts by state for each queue or each job type. */
export function CountsTable({ by, rows, filter = {} }: Props) {
  return (
    <Table caption={by === 'queue' ? 'Jobs by queue and state' : 'Jobs by type and state'}>
      <thead>
        <tr>
          <th scope="col">{by === 'queue' ? 'Queue' : 'Job type'}</th>
          {STATUSES.map((status) => (
            <th key={status} scope="col" className="number">
              {status}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map(({ name, jobs }) => (
          <tr key={name}>
            <th scope="row">
              <Link href={paths[by](name)}>{name}</Link>
            </th>
            {STATUSES.map((status) => (
              <td key={status} className="number">
                {jobs[status] ? (
                  <Link href={paths.jobs({ ...filter, [by]: name, status })} className="quiet-link">
                    <Count n={jobs[status]} />
                  </Link>
                ) : (
                  <span className="muted">0</span>
                )}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </Table>
  );
}
