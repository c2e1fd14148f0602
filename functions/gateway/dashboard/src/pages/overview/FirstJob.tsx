import { base } from '../../api/base';
import type { Schemas } from '../../api/client';
import { asksForKey, useMay, useMe } from '../../api/me';
import { Link } from '../../app/Link';
import { paths } from '../../app/paths';
import { Card } from '../../ui/Card';
import { Code } from '../../ui/Code';
import { EmptyState } from '../../ui/EmptyState';
import { curl } from '../job/curl';

/** FirstJob shows the first user of an installation how to submit a job. */
export function FirstJob({ stats }: { stats: Schemas['Stats'] }) {
  const may = useMay();
  const me = useMe();
  const none = Object.values(stats.jobs).every((n) => n === 0) && stats.throughput.days.every((day) => day.accepted === 0);
  if (!none || !may('submit')) {
    return null;
  }
  const job = '{"jobType": "SIMULATION", "payload": {"steps": [{"type": "LOG", "message": "hi"}]}}';
  return (
    <Card>
      <EmptyState icon="jobs" title="No job has been submitted yet" action={<Link href={paths.newJob()}>Submit one with a form</Link>}>
        A job arrives as a POST, or as a CloudEvent. Submit a first one from a terminal; its figures appear here within seconds.
      </EmptyState>
      <Code text={curl(`${location.origin}${base}/api/jobs`, job, asksForKey(me))} label="the curl of a first job" />
    </Card>
  );
}
