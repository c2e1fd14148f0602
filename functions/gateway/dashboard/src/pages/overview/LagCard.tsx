import { count, plural } from '../../format/number';
import { Card } from '../../ui/Card';
import { Fold } from '../../ui/Fold';
import { Count } from '../../ui/Measure';
import { Table } from '../../ui/Table';
import type { Schemas } from '../../api/client';
import { useLag } from './queries';
import { isBehind } from './triage';

/** LagCard shows how far each function lags behind its topics, in one line unless one is behind. Only an admin of the installation sees it. */
export function LagCard() {
  const topics = useLag().data?.topics;
  if (!topics || topics.length === 0) {
    return null; // unknown: the top of the page shows whether the broker answers
  }
  const behind = topics.filter(isBehind);
  const others = topics.filter((of) => !isBehind(of));
  const most = Math.max(0, ...others.map(({ records }) => records));
  return (
    <div id="lag">
      <Card title="Lag of topics" flush>
        {behind.length > 0 && <LagTable topics={behind} />}
        {others.length > 0 && (
          <Fold title={`${behind.length === 0 ? 'All' : 'The other'} ${plural(others.length, 'topic')} within ${count(most)} records`}>
            {() => <LagTable topics={others} />}
          </Fold>
        )}
      </Card>
    </div>
  );
}

function LagTable({ topics }: { topics: readonly Schemas['TopicLag'][] }) {
  return (
    <Table caption="Records that functions have not yet handled, by function and topic">
      <thead>
        <tr>
          <th scope="col">Function</th>
          <th scope="col">Topic</th>
          <th scope="col" className="number">
            Records
          </th>
          <th scope="col" className="number">
            Readers
          </th>
        </tr>
      </thead>
      <tbody>
        {topics.map((of) => (
          <tr key={`${of.function} ${of.topic}`}>
            <th scope="row">{of.function}</th>
            <td className="mono">{of.topic}</td>
            <td className="number">
              <Count n={of.records} />
            </td>
            <td className="number">{of.members === 0 ? <span className="health-down">none</span> : <Count n={of.members} />}</td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}
