import { base } from '../../api/base';
import { stringify } from '../../api/json';
import { asksForKey, useMe } from '../../api/me';
import { bytes, plural } from '../../format/number';
import { Card } from '../../ui/Card';
import { Code } from '../../ui/Code';
import { Fold } from '../../ui/Fold';
import { Logs } from './Logs';
import type { Job } from './queries';
import { curlOf } from './curl';

/** Folds has parts that may be long or confidential; each is shown when the user opens it. */
export function Folds({ job }: { job: Job }) {
  const me = useMe();
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
      <Fold title="As a curl" note="submits a job like this one">
        {() => <Code text={curlOf(job, location.origin + base, asksForKey(me))} label="the curl" />}
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
