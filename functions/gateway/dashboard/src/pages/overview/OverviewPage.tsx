import { useQuery } from '@tanstack/react-query';
import { statsQuery } from '../../api/queries';
import { PageHeader } from '../../app/PageHeader';
import { usePolling } from '../../live/live';
import { ErrorBox } from '../../ui/ErrorBox';
import { Skeleton } from '../../ui/Skeleton';
import { ControlsCard } from './ControlsCard';
import { FailuresCard } from './FailuresCard';
import { FirstJob } from './FirstJob';
import { HealthStrip } from './HealthStrip';
import { LagCard } from './LagCard';
import { LatencyCard } from './LatencyCard';
import { OldestCard } from './OldestCard';
import { QueuesCard } from './QueuesCard';
import { StateTiles } from './StateTiles';
import { ThroughputCard } from './ThroughputCard';
import { TriageCard } from './TriageCard';
import { UnservedCard, WorkersCard } from './WorkersCard';
import './Overview.css';

/** OverviewPage shows whether everything is well, and if not, where to look. */
export default function OverviewPage() {
  const stats = useQuery({ ...statsQuery, refetchInterval: usePolling(3000) });
  return (
    <>
      <PageHeader title="Overview">
        <HealthStrip />
      </PageHeader>
      {stats.isError && !stats.data && (
        <ErrorBox error={stats.error} title="The statistics cannot be shown" onRetry={() => void stats.refetch()} />
      )}
      {stats.isPending && <Skeleton lines={8} />}
      {stats.data && (
        <>
          <FirstJob stats={stats.data} />
          <TriageCard stats={stats.data} />
          <StateTiles stats={stats.data} />
          <div className="overview-grid">
            <div className="stack">
              <ThroughputCard throughput={stats.data.throughput} />
              <FailuresCard />
            </div>
            <div className="stack">
              <WorkersCard />
              <UnservedCard />
              <OldestCard oldest={stats.data.oldestWaiting} />
              <ControlsCard />
              <LatencyCard latency={stats.data.latency} throughput={stats.data.throughput} />
            </div>
          </div>
          <QueuesCard queues={stats.data.queues} types={stats.data.types} />
          <LagCard />
        </>
      )}
    </>
  );
}
