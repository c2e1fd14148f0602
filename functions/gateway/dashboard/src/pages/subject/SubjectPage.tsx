import { useState } from 'react';
import { useMay, useMe } from '../../api/me';
import type { Schemas } from '../../api/client';
import { Link } from '../../app/Link';
import { PageHeader } from '../../app/PageHeader';
import { paths } from '../../app/paths';
import { count, perSecond, plural } from '../../format/number';
import { Button } from '../../ui/Button';
import { Card } from '../../ui/Card';
import { EmptyState } from '../../ui/EmptyState';
import { ErrorBox } from '../../ui/ErrorBox';
import { RelativeTime } from '../../ui/RelativeTime';
import { Skeleton } from '../../ui/Skeleton';
import { ControlForm } from '../controls/ControlForm';
import { inWords, usePausing } from '../controls/queries';
import { CountsTable } from '../overview/CountsTable';
import { FailuresCard } from '../overview/FailuresCard';
import { LatencyCard } from '../overview/LatencyCard';
import { OldestCard } from '../overview/OldestCard';
import '../overview/Overview.css';
import { StateTiles } from '../overview/StateTiles';
import { ThroughputCard } from '../overview/ThroughputCard';
import { filterOf, useControl, useKnown, useSubjectStats, type Subject } from './queries';
import { useServing, Workers } from './Workers';
import { Waiting } from './Waiting';

/** SubjectPage shows how a queue or a job type does: what holds its jobs, how fast they run, and who runs them. */
export function SubjectPage({ subject }: { subject: Subject }) {
  const { kind, name } = subject;
  const may = useMay();
  const stats = useSubjectStats(subject);
  const control = useControl(subject);
  const known = useKnown(subject);
  const serving = useServing(subject);
  const filter = filterOf(subject);
  const noun = kind === 'queue' ? 'queue' : 'job type';
  const empty = stats.data && !hasJobs(stats.data);
  if (empty && known.is === false) {
    return (
      <>
        <PageHeader title={name} lead={`A ${noun}`} />
        <Card>
          <EmptyState icon={kind === 'queue' ? 'workers' : 'jobs'} title={`There is no ${noun} ${name}`} action={<Link href={kind === 'queue' ? paths.workers() : paths.overview()}>{kind === 'queue' ? 'All queues' : 'Overview'}</Link>}>
            {kind === 'queue' ? 'No setting and no request has created it, and no job is in it.' : 'No worker runs it, and there is no job of this type.'}
          </EmptyState>
        </Card>
      </>
    );
  }
  return (
    <>
      <PageHeader title={name} lead={<>{kind === 'queue' ? 'Queue' : 'Job type'} · <Link href={paths.jobs(filter)}>All its jobs</Link>{may('operate') && <> · <Link href={paths.newAlert(kind === 'queue' ? { queue: name } : { jobType: name })}>Alert at its failures</Link></>}</>}>
        {control.data && <Actions control={control.data} />}
      </PageHeader>
      {stats.data && <Held control={control.data} paused={control.data?.paused ?? known.paused} pending={stats.data.jobs.PENDING} />}
      {stats.isError && !stats.data && <ErrorBox error={stats.error} title="The statistics cannot be shown" onRetry={() => void stats.refetch()} />}
      {stats.isPending && <Skeleton lines={8} />}
      {stats.data && (
        <>
          <StateTiles stats={stats.data} filter={filter} />
          <div className="overview-grid">
            <div className="stack">
              <ThroughputCard throughput={stats.data.throughput} filter={filter} marks={serving.marks} />
              {kind === 'type' && <FailuresCard type={name} />}
              <LatencyCard latency={stats.data.latency} throughput={stats.data.throughput} filter={filter} />
            </div>
            <div className="stack">
              <Waiting subject={subject} jobs={stats.data.jobs} />
              <OldestCard oldest={stats.data.oldestWaiting} />
              <Workers subject={subject} serving={serving} />
            </div>
          </div>
          <Parts subject={subject} stats={stats.data} />
        </>
      )}
    </>
  );
}

function hasJobs({ jobs, throughput }: Schemas['Stats']): boolean {
  return Object.values(jobs).some((n) => n > 0) || throughput.days.some(({ accepted }) => accepted > 0);
}

/** Actions pauses, resumes and limits the subject. Only an operator of the installation may. */
function Actions({ control }: { control: Schemas['Control'] }) {
  const { installation } = useMe();
  const may = useMay();
  const pausing = usePausing();
  const [editing, setEditing] = useState(false);
  if (!may('operate') || !installation) {
    return null;
  }
  return (
    <>
      <Button
        icon={control.paused ? 'play' : 'pause'}
        variant={control.paused ? 'primary' : 'plain'}
        busy={pausing.isPending}
        onClick={() => pausing.mutate({ subject: control, pause: !control.paused })}
      >
        {control.paused ? 'Resume' : 'Pause'}
      </Button>
      <Button icon="edit" onClick={() => setEditing(true)}>
        Limits
      </Button>
      {editing && <ControlForm control={control} onClose={() => setEditing(false)} />}
    </>
  );
}

/** Held shows the pause and the limits of the subject, if it has any. */
function Held({ control, paused, pending }: { control: Schemas['Control'] | undefined; paused: boolean; pending: number }) {
  const limits = [
    typeof control?.maxRunning === 'number' ? `at most ${count(control.maxRunning)} run at once` : '',
    typeof control?.startsPerSecond === 'number' ? `at most ${perSecond(control.startsPerSecond)} start` : '',
  ].filter(Boolean);
  if (!paused && limits.length === 0) {
    return null;
  }
  return (
    <p className={`held ${paused ? 'held-paused' : ''}`}>
      {paused && (
        <>
          <strong>Paused.</strong> It holds {plural(pending, 'job')}; those that run go on.{' '}
        </>
      )}
      {limits.length > 0 && `Limited: ${limits.join(', ')}. `}
      {control && (
        <span className="muted">
          {inWords(control).replace(/^./, (first) => first.toUpperCase())} was changed <RelativeTime at={control.updatedAt} />
          {control.updatedBy && ` by ${control.updatedBy}`}
          {!control.applied && '; the scheduler will apply it in a moment'}.
        </span>
      )}
    </p>
  );
}

/** Parts lists the job types of a queue, or the queues of a job type. */
function Parts({ subject, stats }: { subject: Subject; stats: Schemas['Stats'] }) {
  const rows =
    subject.kind === 'queue'
      ? stats.types.map(({ jobType, jobs }) => ({ name: jobType, jobs }))
      : stats.queues.map(({ queue, jobs }) => ({ name: queue, jobs }));
  if (rows.length === 0) {
    return null;
  }
  return (
    <Card title={subject.kind === 'queue' ? 'Its job types' : 'Its queues'} flush>
      <CountsTable by={subject.kind === 'queue' ? 'type' : 'queue'} rows={rows} filter={filterOf(subject)} />
    </Card>
  );
}
