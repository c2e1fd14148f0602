import { useState } from 'react';
import type { Schemas } from '../../api/client';
import { Link } from '../../app/Link';
import { paths } from '../../app/paths';
import { share } from '../../format/number';
import { Card } from '../../ui/Card';
import { Segments } from '../../ui/Segments';
import { Bars, type Bar } from './Bars';
import { sinceOf, WINDOWS, type Window } from './window';

const SHOWN = 5;
const NAMED = 10; // error codes at most

interface Props {
  failures: Schemas['FailuresByWindow'];
  throughput: Schemas['Throughput'];
}

/** FailuresCard names the job types and the error codes that failed most, over an hour, a day or a month. */
export function FailuresCard({ failures, throughput }: Props) {
  const [window, setWindow] = useState<Window>('24h');
  const { jobTypes, errorCodes } = failures[window];
  const endedSince = sinceOf(window, throughput);
  const byType: Bar[] = jobTypes.slice(0, SHOWN).map(({ jobType, failed, ended }) => ({
    name: jobType,
    n: failed,
    note: `${share(failed, ended)} of those that ended`,
    href: paths.jobs({ status: 'FAILED', type: jobType, endedSince }),
  }));
  // With many codes, failures with an unnamed code are counted with those without one.
  const allNamed = errorCodes.length < NAMED;
  const byCode: Bar[] = errorCodes.slice(0, SHOWN).map(({ errorCode, failed }) => ({
    name: errorCode ?? (allNamed ? 'no error code' : 'other or none'),
    n: failed,
    href: paths.jobs({ status: 'FAILED', endedSince, ...(errorCode !== null ? { errorCode } : allNamed && { noErrorCode: 'true' }) }),
  }));
  return (
    <Card
      title="What fails most"
      aside={
        <>
          <Segments label="Window of failures" value={window} options={WINDOWS} onChange={setWindow} />
          <Link href={paths.dead()}>All dead letters</Link>
        </>
      }
    >
      {byType.length === 0 ? (
        <p className="muted">No job failed for good. A job whose last attempt fails is counted here by its type and error code.</p>
      ) : (
        <div className="stack">
          <Bars title="By job type" bars={byType} />
          {byCode.length > 0 && <Bars title="By error code" bars={byCode} />}
        </div>
      )}
    </Card>
  );
}
