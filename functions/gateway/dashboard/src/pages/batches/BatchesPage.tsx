import { answer, api } from '../../api/client';
import { paths } from '../../app/paths';
import { GroupsPage } from './GroupsPage';

export default function BatchesPage() {
  return (
    <GroupsPage
      one="batch"
      many="batches"
      title="Batches"
      lead="Jobs that end together: their progress, and the job that follows them."
      href={paths.batch}
      read={async (query) => {
        const { batches, nextCursor } = await answer(api.GET('/api/batches', { params: { query } }));
        return { groups: batches.map((batch) => ({ ...batch, id: batch.batchId })), nextCursor };
      }}
    >
      A program opens a batch, submits jobs with its batchId, and closes it. The batch counts its jobs by state, and when the last of
      them has ended, a job of your choice follows: one if all completed, another one if some failed.
    </GroupsPage>
  );
}
