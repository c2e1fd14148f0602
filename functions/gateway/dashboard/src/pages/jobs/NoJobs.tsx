import { useQuery } from '@tanstack/react-query';
import { answer, api } from '../../api/client';
import { ofAllOwners, useOwner } from '../../api/session';
import { Link } from '../../app/Link';
import { paths } from '../../app/paths';
import { actFor } from '../../app/router';
import { count } from '../../format/number';
import { Button } from '../../ui/Button';
import { EmptyState } from '../../ui/EmptyState';
import { isEmpty, toQuery, type Filters } from './filters';

const LOOKED_AT = 200;
const NAMED = 12;

interface Props {
  filters: Filters;
  onClear: () => void;
}

/** NoJobs explains why no job is listed. */
export function NoJobs({ filters, onClear }: Props) {
  const owner = useOwner();
  const filtered = !isEmpty(filters);
  const others = owner !== null && <Others acting={owner} filters={filters} />;
  if (!filtered) {
    return (
      <EmptyState icon="jobs" title={owner === null ? 'No job has been submitted yet' : `${owner} has no jobs`} action={<Link href={paths.newJob()}>Submit one with a form</Link>}>
        A job arrives as a POST to <code>/api/jobs</code>, as a CloudEvent at <code>/events</code>, or from a schedule.
        {others}
      </EmptyState>
    );
  }
  return (
    <EmptyState icon="filter" title={owner === null ? 'No job matches' : `No job of ${owner} matches`} action={<Button onClick={onClear}>Remove all filters</Button>}>
      All filters must hold at once. Jobs that ended long ago may have been deleted; new ones are announced here as they come.
      {others}
    </EmptyState>
  );
}

/** Others shows whose jobs would be listed, if the user did not act for an owner. */
function Others({ acting, filters }: { acting: string; filters: Filters }) {
  const found = useQuery({
    queryKey: ['jobs', 'others', filters],
    queryFn: ({ signal }) =>
      answer(api.GET('/api/jobs', { params: { query: { ...toQuery(filters, new Date()), limit: LOOKED_AT } }, headers: ofAllOwners, signal })),
    gcTime: 0,
  });
  const jobs = found.data?.jobs.filter(({ ownerId }) => ownerId !== acting) ?? [];
  if (jobs.length === 0) {
    return null;
  }
  const more = found.data?.nextCursor === null ? '' : ' or more';
  const owners = new Map<string, number>();
  for (const { ownerId } of jobs) {
    if (ownerId !== null) {
      owners.set(ownerId, (owners.get(ownerId) ?? 0) + 1);
    }
  }
  return (
    <div className="others">
      <p>
        {jobs.length === 1 ? `1${more} job of others matches` : `${count(jobs.length)}${more} jobs of others match`}:
      </p>
      <div className="row-wrap">
        {[...owners].slice(0, NAMED).map(([owner, jobs]) => (
          <Button key={owner} small onClick={() => actFor(owner)}>
            {owner} {count(jobs)}
          </Button>
        ))}
        <Button small onClick={() => actFor(null)}>
          Show all owners
        </Button>
      </div>
    </div>
  );
}
