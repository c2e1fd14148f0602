import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useMay, useMe } from '../../api/me';
import { controlsQuery } from '../../api/queries';
import { Link } from '../../app/Link';
import { PageHeader } from '../../app/PageHeader';
import { paths } from '../../app/paths';
import { count, perSecond } from '../../format/number';
import { usePolling } from '../../live/live';
import { Badge } from '../../ui/Badge';
import { Button } from '../../ui/Button';
import { Card } from '../../ui/Card';
import { EmptyState } from '../../ui/EmptyState';
import { ErrorBox } from '../../ui/ErrorBox';
import { RelativeTime } from '../../ui/RelativeTime';
import { Skeleton } from '../../ui/Skeleton';
import { Table } from '../../ui/Table';
import { ControlForm } from './ControlForm';
import { type Control, inWords, usePausing, useRemove } from './queries';
import { Shares } from './Shares';

export default function ControlsPage() {
  const may = useMay();
  const [editing, setEditing] = useState<Control | 'new'>();
  const list = useQuery({ ...controlsQuery, refetchInterval: usePolling(5000) });
  const controls = list.data?.controls ?? [];
  const create = may('operate') && (
    <Button icon="new" variant="primary" onClick={() => setEditing('new')}>
      New limit or pause
    </Button>
  );
  return (
    <div className="stack">
      <PageHeader title="Limits and pauses" lead="What keeps jobs from starting: pauses, and limits on how many run or start.">
        {controls.length > 0 && create}
      </PageHeader>
      {list.isError && <ErrorBox error={list.error} onRetry={() => void list.refetch()} />}
      {list.isPending && <Skeleton lines={5} />}
      {list.isSuccess && controls.length === 0 && (
        <EmptyState icon="controls" title="Nothing is paused or limited" action={create}>
          Pause a queue while the system behind it is repaired, let at most ten jobs of a type run at once, or start no more than two a
          second for an owner. Jobs that wait show what blocks them; those that run go on.
        </EmptyState>
      )}
      {controls.length > 0 && (
        <Card flush>
          <List controls={controls} onEdit={setEditing} />
        </Card>
      )}
      {list.isSuccess && <Shares controls={controls} onEdit={setEditing} />}
      {editing && <ControlForm {...(editing === 'new' ? {} : { control: editing })} onClose={() => setEditing(undefined)} />}
    </div>
  );
}

function List({ controls, onEdit }: { controls: Control[]; onEdit: (control: Control) => void }) {
  const may = useMay();
  return (
    <Table caption="Limits and pauses" cards>
      <thead>
        <tr>
          <th scope="col">What</th>
          <th scope="col">Starts</th>
          <th scope="col" className="number">
            At once
          </th>
          <th scope="col" className="number">
            Rate
          </th>
          <th scope="col" className="number">
            Weight
          </th>
          <th scope="col">Changed</th>
          {may('operate') && <th scope="col">Actions</th>}
        </tr>
      </thead>
      <tbody>
        {controls.map((control) => (
          <tr key={`${control.kind}/${control.name}`}>
            <td className="cell-title">
              <span className="muted">{control.kind === 'fairnessKey' ? 'fairness key' : control.kind}</span> <bdi><Name control={control} /></bdi>
            </td>
            <td>
              <State control={control} />
            </td>
            <td data-label="At once:" className={`number ${control.maxRunning === null ? 'cell-empty' : ''}`}>{control.maxRunning === null ? 'any number' : `at most ${count(control.maxRunning)}`}</td>
            <td data-label="Rate:" className={`number ${control.startsPerSecond === null ? 'cell-empty' : ''}`}>{control.startsPerSecond === null ? 'any' : `at most ${perSecond(control.startsPerSecond)}`}</td>
            <td data-label="Weight" className={`number ${control.kind === 'fairnessKey' ? '' : 'cell-empty'}`}>{control.kind === 'fairnessKey' ? (control.weight ?? 1) : ''}</td>
            <td data-label="Changed">
              <RelativeTime at={control.updatedAt} /> <span className="muted">{control.updatedBy && `by ${control.updatedBy}`}</span>
            </td>
            {may('operate') && (
              <td className="cell-whole">
                <Actions control={control} onEdit={() => onEdit(control)} />
              </td>
            )}
          </tr>
        ))}
      </tbody>
    </Table>
  );
}

/** Name leads to the page of a queue or a job type. */
function Name({ control: { kind, name } }: { control: Control }) {
  return (kind === 'queue' || kind === 'type') && name !== '*' ? <Link href={paths[kind](name)}>{name}</Link> : name;
}

function State({ control }: { control: Control }) {
  return (
    <span className="row">
      {control.paused ? <Badge tone="warn">paused</Badge> : <Badge tone="good">starting</Badge>}
      {!control.applied && <Badge>not applied yet</Badge>}
    </span>
  );
}

function Actions({ control, onEdit }: { control: Control; onEdit: () => void }) {
  const { installation, ownerId } = useMe();
  const pausing = usePausing();
  const remove = useRemove();
  if (!installation && (control.kind !== 'owner' || control.name !== ownerId)) {
    return <span className="muted">the installation's</span>;
  }
  return (
    <div className="row-wrap">
      <Button
        small
        icon={control.paused ? 'play' : 'pause'}
        busy={pausing.isPending}
        aria-label={`${control.paused ? 'Resume' : 'Pause'} ${inWords(control)}`}
        onClick={() => pausing.mutate({ subject: control, pause: !control.paused })}
      >
        {control.paused ? 'Resume' : 'Pause'}
      </Button>
      <Button small icon="edit" aria-label={`Edit the limits of ${inWords(control)}`} onClick={onEdit}>
        Edit
      </Button>
      <Button
        small
        icon="trash"
        busy={remove.isPending}
        aria-label={`Remove all limits of ${inWords(control)}`}
        onClick={() => remove.mutate(control)}
      >
        Remove
      </Button>
    </div>
  );
}
