import { useMutation, useQuery } from '@tanstack/react-query';
import { answer, api, type Schemas } from '../../api/client';
import { useMay } from '../../api/me';
import { usePolling } from '../../live/live';
import { Button } from '../../ui/Button';
import { Card } from '../../ui/Card';
import { ErrorBox } from '../../ui/ErrorBox';
import { RelativeTime } from '../../ui/RelativeTime';
import { Table } from '../../ui/Table';
import { toast } from '../../ui/toasts';
import { reportProblem } from './commands';
import type { Job } from './queries';

/** Deliveries shows the deliveries of the job's ends to its callbackUrl, and repeats one. */
export function Deliveries({ job }: { job: Job }) {
  const may = useMay();
  const query = useQuery({
    queryKey: ['job', job.jobId, 'deliveries', job.version],
    queryFn: ({ signal }) => answer(api.GET('/api/jobs/{jobId}/deliveries', { params: { path: { jobId: job.jobId } }, signal })),
    enabled: job.callbackUrl !== null,
    refetchInterval: usePolling(5000),
  });
  const repeat = useMutation({
    mutationFn: ({ version }: Schemas['Delivery']) =>
      answer(api.POST('/api/jobs/{jobId}/deliveries/{version}/retry', { params: { path: { jobId: job.jobId, version: String(version) } } })),
    onSuccess: () => {
      toast('The delivery is due now, with the same id.');
      void query.refetch();
    },
    onError: reportProblem,
  });

  if (job.callbackUrl === null) {
    return null;
  }
  const deliveries = query.data?.deliveries ?? [];
  return (
    <Card title="Deliveries to the callback URL" flush>
      {query.isError && <ErrorBox error={query.error} onRetry={() => void query.refetch()} />}
      {deliveries.length === 0 ? (
        <p className="muted card-text">None yet. When the job ends, its result is POSTed there, signed, until the receiver answers 2xx.</p>
      ) : (
        <Table caption="Deliveries, newest first" cards>
          <thead>
            <tr>
              <th scope="col">State</th>
              <th scope="col">Of</th>
              <th scope="col">Tries</th>
              <th scope="col">Last answer</th>
              <th scope="col">Last try</th>
              <th scope="col">Next try</th>
              <th scope="col">
                <span className="visually-hidden">Action</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {deliveries.map((delivery) => (
              <tr key={delivery.id}>
                <td className={`delivery-${delivery.status.toLowerCase()}`}>{delivery.status}</td>
                <td data-label="of">{delivery.jobStatus}</td>
                <td data-label="Tries">{delivery.tries}</td>
                <td className="cell-whole">{delivery.lastAnswer ?? delivery.lastError ?? <span className="muted">–</span>}</td>
                <td data-label="Last try">
                  <RelativeTime at={delivery.lastTryAt} />
                </td>
                <td data-label="Next try" className={delivery.nextAt === null ? 'cell-empty' : ''}>
                  <RelativeTime at={delivery.nextAt} />
                </td>
                <td>
                  {may('operate') && (
                    <Button small icon="retry" busy={repeat.isPending} onClick={() => repeat.mutate(delivery)}>
                      Deliver again
                    </Button>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </Table>
      )}
    </Card>
  );
}
