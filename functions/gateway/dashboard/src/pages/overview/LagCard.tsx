import { useQuery } from '@tanstack/react-query';
import { answer, api } from '../../api/client';
import { useMay } from '../../api/me';
import { usePolling } from '../../live/live';
import { Card } from '../../ui/Card';
import { Count } from '../../ui/Measure';
import { Table } from '../../ui/Table';

/** LagCard shows how far each function lags behind its topics. Only an admin of the installation sees it. */
export function LagCard() {
  const allowed = useMay()('installation');
  const lag = useQuery({
    queryKey: ['lag'],
    queryFn: ({ signal }) => answer(api.GET('/api/lag', { signal })),
    refetchInterval: usePolling(10_000),
    enabled: allowed,
  });
  const topics = lag.data?.topics;
  if (!topics || topics.length === 0) {
    return null; // unknown: the top of the page shows whether the broker answers
  }
  return (
    <Card title="Lag of topics" flush>
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
    </Card>
  );
}
