import { base } from '../../api/base';
import { stringify } from '../../api/json';
import { bytes, plural } from '../../format/number';
import { clock } from '../../format/time';
import { Card } from '../../ui/Card';
import { Code } from '../../ui/Code';
import { Fold } from '../../ui/Fold';
import { StatusBadge } from '../../ui/StatusBadge';
import { Table } from '../../ui/Table';
import { Logs } from './Logs';
import type { Job } from './queries';
import { curlOf } from './curl';

/** Folds has parts that may be long or confidential; each is shown when the user opens it. */
export function Folds({ job }: { job: Job }) {
  const payload = stringify(job.payload, 2);
  const output = stringify(job.output, 2);
  return (
    <Card flush>
      <Fold title="Log" note={job.logs.length >= 200 ? '200 lines or more' : plural(job.logs.length, 'line')}>
        {() => <Logs job={job} />}
      </Fold>
      <Fold title="Payload" note={sealed(job, 'payload') ?? bytes(size(payload))}>
        {() => <Code text={payload} label="the payload" />}
      </Fold>
      {job.output !== null && job.output !== undefined && (
        <Fold title="Output" note={sealed(job, 'output') ?? bytes(size(output))}>
          {() => <Code text={output} label="the output" />}
        </Fold>
      )}
      {job.lastError && (
        <Fold title="Last error" note={job.lastError.errorCode}>
          {() => <Code text={job.lastError?.message ?? ''} label="the error message" />}
        </Fold>
      )}
      <Fold title="History" note={plural(job.history.length, 'move')}>
        {() => <History job={job} />}
      </Fold>
      <Fold title="As a curl" note="submits a job like this one">
        {() => <Code text={curlOf(job, location.origin + base)} label="the curl" />}
      </Fold>
    </Card>
  );
}

function size(text: string): number {
  return new TextEncoder().encode(text).length;
}

/** A sealed member cannot be shown: the gateway does not have its key. */
function sealed(job: Job, member: string): string | undefined {
  return job.sealed?.includes(member) ? 'sealed with a key that the gateway does not have' : undefined;
}

function History({ job }: { job: Job }) {
  return (
    <Table caption="Moves between states, oldest first">
      <thead>
        <tr>
          <th scope="col">At</th>
          <th scope="col">To</th>
          <th scope="col">Attempt</th>
          <th scope="col">By</th>
          <th scope="col">Why</th>
        </tr>
      </thead>
      <tbody>
        {job.history.map((move, i) => (
          <tr key={i}>
            <td className="tabular">
              <time dateTime={move.at} title={move.at}>
                {clock(move.at)}
              </time>
            </td>
            <td>
              <StatusBadge status={move.to} />
            </td>
            <td>{move.attempt}</td>
            <td>{move.by}</td>
            <td>{move.reason ?? <span className="muted">–</span>}</td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}
