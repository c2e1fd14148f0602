import { EmptyState } from '../ui/EmptyState';
import { Link } from './Link';
import { PageHeader } from './PageHeader';
import { paths } from './paths';

export function NotFound() {
  return (
    <>
      <PageHeader title="No such page" />
      <EmptyState icon="search" title="There is no page at this address" action={<Link href={paths.overview()}>Go to the overview</Link>}>
        The address may be mistyped. A job is at /jobs/ followed by its id; Ctrl+K finds one by its id.
      </EmptyState>
    </>
  );
}
