import { useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { useMay } from '../../api/me';
import { useSearch } from '../../app/useSearch';
import { count } from '../../format/number';
import { usePolling } from '../../live/live';
import { Button } from '../../ui/Button';
import { Card } from '../../ui/Card';
import { Segments } from '../../ui/Segments';
import { type Flow, hasEnded } from '../batches/queries';
import '../job/Job.css';
import { firstFailed, never, wayTo } from './failure';
import { Graph } from './Graph';
import { type GraphNode, nodesOf } from './nodes';
import { GroupPanel, Panel } from './Panel';
import { summariesQuery, type Summary } from './queries';
import { Waterfall } from './Waterfall';

interface Props {
  flow: Flow;
  onRetryFrom: (name: string) => void;
}

const readView = ({ job, view }: Record<string, unknown>) => ({
  job: typeof job === 'string' ? job : null,
  view: view === 'waterfall' ? ('waterfall' as const) : ('graph' as const),
});

/** View shows the jobs of a flow as a graph or a waterfall, its first failure, and the chosen job. */
export function View({ flow, onRetryFrom }: Props) {
  const [{ job: jobId, view }, go] = useSearch(readView, ({ job, view }) => ({ job, view: view === 'graph' ? null : view }));
  const [unfolded, setUnfolded] = useState<ReadonlySet<string>>(new Set());
  const [group, setGroup] = useState<string | null>(null);
  const made = useMemo(() => nodesOf(flow.jobs, unfolded), [flow.jobs, unfolded]);
  const polling = usePolling(5000);
  const summaries = useQuery({ ...summariesQuery(flow), refetchInterval: hasEnded(flow) ? false : polling, placeholderData: (before) => before });
  const known = useMemo(() => summaries.data ?? new Map<string, Summary>(), [summaries.data]);
  const first = firstFailed(flow, known);
  const way = useMemo(() => wayTo(flow.jobs, first), [flow.jobs, first]);
  const chosen = jobId === null ? null : (Object.keys(flow.jobs).find((name) => flow.jobs[name]?.jobId === jobId) ?? null);
  const many = made.nodes.find(({ key }) => key === group);

  const show = (job: string | null) => {
    setGroup(null);
    go({ job, view });
  };
  const choose = (node: GraphNode) => {
    const [job] = node.jobs;
    if (job && node.jobs.length === 1) {
      show(job.jobId === jobId ? null : job.jobId);
      return;
    }
    const next = new Set([...unfolded, node.key]);
    if (nodesOf(flow.jobs, next).nodes.some(({ key }) => key === node.key)) {
      setGroup(node.key); // too many to be drawn
    } else {
      setUnfolded(next);
    }
  };
  const aside = (
    <span className="row-wrap">
      {unfolded.size > 0 && (
        <Button small onClick={() => setUnfolded(new Set())}>
          Fold equal jobs
        </Button>
      )}
      <Segments
        label="View"
        value={view}
        options={[
          { value: 'graph', label: 'Graph' },
          { value: 'waterfall', label: 'Waterfall' },
        ]}
        onChange={(to) => go({ job: jobId, view: to })}
      />
    </span>
  );
  const isOpen = many !== undefined || chosen !== null;
  return (
    <>
      {first !== null && <Failure flow={flow} name={first} known={known} onOpen={show} onRetryFrom={onRetryFrom} />}
      <div className={isOpen ? 'flow-view flow-view-chosen' : 'flow-view'}>
        {many && <GroupPanel node={many} flowId={flow.flowId} onClose={() => setGroup(null)} />}
        {!many && chosen !== null && jobId !== null && <Panel name={chosen} jobId={jobId} onClose={() => show(null)} />}
        <Card title={view === 'graph' ? 'Graph' : 'Waterfall'} aside={aside} className="flow-drawing">
          {view === 'graph' ? (
            <Graph flowId={flow.flowId} made={made} known={known} chosen={chosen} way={way} onChoose={choose} />
          ) : (
            <Waterfall nodes={made.nodes} known={known} chosen={chosen} onChoose={choose} />
          )}
        </Card>
      </div>
    </>
  );
}

interface FailureProps extends Props {
  name: string;
  known: ReadonlyMap<string, Summary>;
  onOpen: (jobId: string) => void;
}

function Failure({ flow, name, known, onOpen, onRetryFrom }: FailureProps) {
  const may = useMay();
  const job = flow.jobs[name];
  const error = known.get(job?.jobId ?? '')?.lastError;
  const skipped = never(flow.jobs);
  return (
    <div className="banner banner-bad row-wrap spread">
      <p>
        First failure: <strong>{name}</strong>
        {error && (
          <>
            , <code>{error.errorCode}</code> <bdi>{error.message}</bdi>
          </>
        )}
        {skipped > 0 && <span className="muted"> {skipped === 1 ? '1 job was cancelled.' : `${count(skipped)} jobs were cancelled.`}</span>}
      </p>
      <span className="row">
        {job && (
          <Button small onClick={() => onOpen(job.jobId)}>
            Open
          </Button>
        )}
        {may('operate') && hasEnded(flow) && (
          <Button small icon="retry" onClick={() => onRetryFrom(name)}>
            Retry from here
          </Button>
        )}
      </span>
    </div>
  );
}
