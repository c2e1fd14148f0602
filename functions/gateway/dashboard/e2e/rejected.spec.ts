import { Kafka, logLevel, type Message } from 'kafkajs';
import { accessible, expect, test } from './fixtures';

interface Rejected {
  id: string;
  function: string;
  topic: string;
  partition: number;
  offset: number;
  redrivenAt: string | null;
}

/** put publishes an unsigned record on a topic. */
async function put(broker: string, topic: string, message: Message): Promise<void> {
  const kafka = new Kafka({ clientId: 'stranger', brokers: [broker], logLevel: logLevel.NOTHING });
  const producer = kafka.producer({ allowAutoTopicCreation: false });
  await producer.connect();
  try {
    await producer.send({ topic, messages: [message] });
  } finally {
    await producer.disconnect();
  }
}

test('rejected records are looked into, redriven, and discarded', async ({ page, site, open, api, unique }) => {
  const value = JSON.stringify({ no: 'event', of: unique });
  await put(site.broker, 'job-created', { key: unique, value, headers: { ce_type: 'nothing' } });
  await put(site.broker, 'worker-heartbeat', { key: unique, value });
  const listed = async (topic: string) =>
    (await api<{ rejected: Rejected[] }>('GET', `/api/rejected?topic=${topic}`, undefined, site.admin)).rejected;
  // Only the records of this test: a topic has records of other runs, too.
  const mine = async (topic: string) => {
    const whole = await Promise.all(
      (await listed(topic)).map((each) => api<Rejected & { key: { data: string } | null }>('GET', `/api/rejected/${each.id}`, undefined, site.admin)),
    );
    return whole.filter(({ key }) => key?.data === unique);
  };
  await expect.poll(async () => [(await mine('job-created')).length, (await mine('worker-heartbeat')).length]).toEqual([1, 2]); // two functions read heartbeats
  const [created] = await mine('job-created');
  const [heartbeat, otherHeartbeat] = await mine('worker-heartbeat');
  const row = (record: Rejected | undefined) =>
    page.getByRole('row').filter({ hasText: new RegExp(`${record?.function}${record?.topic}${record?.partition}${record?.offset}\\D`) }); // in this order
  const dialog = page.getByRole('dialog');
  await open('/rejected', site.admin);

  await row(created).getByRole('button').click();
  await dialog.getByText('Headers').click();
  await expect(dialog.getByText('ce_type: nothing')).toBeVisible();
  await dialog.getByText('Value', { exact: true }).click();
  await expect(dialog.getByText(`"of": "${unique}"`)).toBeVisible();
  await accessible(page);
  await dialog.getByRole('button', { name: 'Redrive' }).click();
  await expect(page.getByText('The record is on job-created again')).toBeVisible();
  await expect(row(created).getByText('redriven')).toBeVisible();
  await expect.poll(async () => (await mine('job-created')).map(({ redrivenAt }) => redrivenAt !== null)).toEqual([false, true]); // it is rejected again
  const [again] = await mine('job-created');

  await row(heartbeat).getByRole('button').click();
  await expect(dialog.getByText('It cannot be redriven')).toBeVisible();
  await expect(dialog.getByRole('button', { name: 'Redrive' })).toBeDisabled();
  await dialog.getByRole('button', { name: 'Discard…' }).click();
  expect(await mine('worker-heartbeat')).toHaveLength(2); // a discard is confirmed first
  await dialog.getByRole('button', { name: 'Discard it for good' }).click();
  await expect(row(heartbeat)).toHaveCount(0);
  expect((await mine('worker-heartbeat')).map(({ id }) => id)).toEqual([otherHeartbeat?.id]);

  await row(again).getByRole('button').click();
  await dialog.getByRole('button', { name: 'Discard…' }).click();
  await dialog.getByRole('button', { name: 'Discard it for good' }).click();
  await expect(row(again)).toHaveCount(0);
});
