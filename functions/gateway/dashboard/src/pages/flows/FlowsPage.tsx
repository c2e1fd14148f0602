import { answer, api } from '../../api/client';
import { paths } from '../../app/paths';
import { GroupsPage } from '../batches/GroupsPage';

export default function FlowsPage() {
  return (
    <GroupsPage
      one="flow"
      many="flows"
      title="Flows"
      lead="Jobs that wait for each other and use each other's outputs."
      href={paths.flow}
      read={async (query) => {
        const { flows, nextCursor } = await answer(api.GET('/api/flows', { params: { query } }));
        return { groups: flows.map((flow) => ({ ...flow, id: flow.flowId })), nextCursor };
      }}
    >
      A program submits jobs that name each other in one request. Each job waits for those that it names, and can use their outputs.
      Here you see which of them run, and what they wait for.
    </GroupsPage>
  );
}
