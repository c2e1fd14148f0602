import type { Schemas } from '../../api/client';
import { Link } from '../../app/Link';
import { paths } from '../../app/paths';
import { count } from '../../format/number';
import { Card } from '../../ui/Card';
import { Table } from '../../ui/Table';
import { filterOf, useWaiting, type Subject } from './queries';
import { reasons, type Reason } from './waiting';

/** Waiting shows how many jobs wait for what. */
export function Waiting({ subject, jobs }: { subject: Subject; jobs: Schemas['JobCounts'] }) {
  const found = useWaiting(subject, jobs.PENDING > 0);
  const filter = filterOf(subject);
  const sample = jobs.PENDING > 0 ? (found.data?.jobs ?? []) : [];
  const estimated = sample.length > 0 && sample.length < jobs.PENDING;
  const rows = [
    ...reasons(sample, jobs.PENDING).map((reason) => ({ ...inWords(reason), jobs: reason.jobs, about: estimated, status: 'PENDING' })),
    { text: 'Their time: they are due later', href: '', jobs: jobs.SCHEDULED, about: false, status: 'SCHEDULED' },
    { text: 'Their next try after a failure', href: '', jobs: jobs.RETRYING, about: false, status: 'RETRYING' },
  ].filter((row) => row.jobs > 0);
  return (
    <Card title="What its jobs wait for" flush={rows.length > 0}>
      {rows.length === 0 ? (
        <p className="muted">{found.isLoading ? 'Counting…' : 'No job waits.'}</p>
      ) : (
        <>
          <Table caption="Waiting jobs by reason">
            <thead>
              <tr>
                <th scope="col">Reason</th>
                <th scope="col" className="number">
                  Jobs
                </th>
              </tr>
            </thead>
            <tbody>
              {rows.map(({ text, href, jobs: n, about, status }) => (
                <tr key={text}>
                  <th scope="row" className="reason">
                    {href ? <Link href={href}>{text}</Link> : text}
                  </th>
                  <td className="number">
                    <Link href={paths.jobs({ ...filter, status })} className="quiet-link">
                      {about && 'about '}
                      {count(n)}
                    </Link>
                  </td>
                </tr>
              ))}
            </tbody>
          </Table>
          {estimated && <p className="load-more small muted">The reasons of PENDING jobs are those of the newest {count(sample.length)}.</p>}
        </>
      )}
    </Card>
  );
}

function inWords({ blocker }: Reason): { text: string; href: string } {
  if (blocker === null) {
    return { text: 'A free worker', href: paths.workers() };
  }
  const [kind = '', name = ''] = blocker.id.split(/:(.*)/s);
  const control = kind === 'queue' && name !== '*' ? paths.queue(name) : kind === 'type' && name !== '*' ? paths.type(name) : paths.controls();
  switch (blocker.kind) {
    case 'pause':
      return { text: `The end of the pause of ${kind} ${name}`, href: control };
    case 'limit':
      return { text: `Room in the limit of ${kind} ${name}`, href: control };
    case 'worker':
      return { text: `A worker that runs ${blocker.id}`, href: paths.type(blocker.id) };
    case 'dependency':
      return { text: 'Another job', href: '' };
    case 'order':
      return { text: 'Their turn in an ordering key', href: '' };
    case 'singleton':
      return { text: 'The end of a job with the same singleton key', href: '' };
  }
}
