import { Kafka, logLevel } from 'kafkajs';
import { expect, test } from './fixtures';

// Numbers that JSON.parse would change: beyond 2^53, with a final zero, an exponent, a sign of zero, and 30 digits.
const numbers = '{"id":1970670598291982290,"price":1.10,"size":1E2,"zero":-0,"long":123456789012345678901234567890}';
const shown = numbers.replaceAll(/[{}]/g, '').split(',').map((member) => member.replace(':', ': '));

/** raw sends a request of which the body is JSON already, and returns the answer as text. */
function raw(url: string, key: string) {
  return async (method: string, path: string, body?: string): Promise<string> => {
    const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' };
    const response = await fetch(url + path, { method, headers, ...(body !== undefined && { body }) });
    const text = await response.text();
    expect(response.ok, text).toBe(true);
    return text;
  };
}

test('a job keeps its numbers where it is shown, changed, run again and copied', async ({ page, open, site }) => {
  const send = raw(site.url, site.acme.key);
  const made = await send('POST', '/api/jobs', `{"jobType":"INVOICE","payload":${numbers},"delayMs":3600000}`);
  const { jobId } = JSON.parse(made) as { jobId: string };
  const main = page.getByRole('main');
  const dialog = page.getByRole('dialog');
  const payload = main.getByRole('region', { name: 'the payload' });
  const all = async (text: () => Promise<string | null>) => {
    const missing = async () => {
      const now = (await text()) ?? '';
      return shown.filter((member) => !now.includes(member));
    };
    await expect.poll(missing).toEqual([]);
  };
  await open(`/jobs/${jobId}`);
  await main.getByText('Payload', { exact: true }).click();
  await all(() => payload.textContent());
  await main.getByText('As a curl').click();
  await all(() => main.getByRole('region', { name: /curl/ }).textContent());

  await main.getByRole('button', { name: 'Change' }).click();
  const changes = dialog.getByLabel('Changes');
  await all(() => changes.inputValue());
  await changes.fill((await changes.inputValue()).replace('"priority": 0', '"priority": 9'));
  await dialog.getByRole('button', { name: 'Change the job' }).click();
  await expect.poll(() => send('GET', `/api/jobs/${jobId}`)).toContain('"priority":9');
  expect(await send('GET', `/api/jobs/${jobId}`)).toContain(`"payload":${numbers}`);

  await main.getByRole('button', { name: 'Run again' }).click();
  await changes.fill(`{"payload": {"more": 9007199254740993}, "delayMs": 3600000}`);
  await dialog.getByRole('button', { name: 'Run again with these changes' }).click();
  await expect(page).not.toHaveURL(new RegExp(jobId));
  const again = new URL(page.url()).pathname.split('/').pop() ?? '';
  expect(await send('GET', `/api/jobs/${again}`)).toContain(`"payload":${numbers.replace('}', ',"more":9007199254740993}')}`);
});

test('a schedule keeps the numbers of its job when it is saved, deleted and brought back', async ({ page, open, site, unique }) => {
  const send = raw(site.url, site.acme.key);
  const name = `numbers.${unique}`;
  const is = () => send('GET', `/api/schedules/${name}`);
  await send('POST', '/api/schedules', `{"name":"${name}","cron":"0 0 1 1 *","job":{"jobType":"INVOICE","payload":${numbers}}}`);
  await open(`/schedules/${name}`);
  const form = page.getByRole('dialog');
  await page.getByRole('button', { name: 'Edit' }).click();
  await form.getByLabel('Cron').fill('0 0 2 1 *');
  await form.getByRole('button', { name: 'Save' }).click();
  await expect(form).toHaveCount(0);
  await expect.poll(is).toContain('"cron":"0 0 2 1 *"');
  expect(await is()).toContain(`"payload":${numbers}`);
  await page.getByRole('button', { name: 'Delete' }).click();
  const deleted = page.locator('.toast').filter({ hasText: `${name} is deleted` });
  await deleted.getByRole('button', { name: 'Undo' }).click();
  await expect(page.getByRole('link', { name })).toBeVisible();
  expect(await is()).toContain(`"payload":${numbers}`);
});

test('a new job has the numbers that were typed', async ({ page, open, site }) => {
  await open('/new', site.acme.key);
  await page.getByLabel('Job type').selectOption('INVOICE');
  const payload = page.getByRole('region', { name: 'As text' }).getByRole('textbox');
  await payload.fill(numbers);
  const sent = page.waitForRequest((request) => request.method() === 'POST' && request.url().endsWith('/api/jobs'));
  await page.getByRole('button', { name: 'Submit the job' }).click();
  expect((await sent).postData()).toContain(`"payload":${numbers}`);

  await page.goto('/new');
  await page.getByLabel('Job type').selectOption('SIMULATION');
  await page.locator('form .schema-list').getByRole('spinbutton').first().fill('1970670598291982290');
  await expect(payload).toHaveValue(/1970670598291982290/);
});

test('a rejected record keeps its numbers', async ({ page, site, open, api, unique }) => {
  const kafka = new Kafka({ clientId: 'stranger', brokers: [site.broker], logLevel: logLevel.NOTHING });
  const producer = kafka.producer({ allowAutoTopicCreation: false });
  await producer.connect();
  await producer.send({ topic: 'job-created', messages: [{ key: unique, value: numbers, headers: { ce_type: 'nothing' } }] });
  await producer.disconnect();
  interface Rejected {
    id: string;
    function: string;
    topic: string;
    partition: number;
    offset: number;
  }
  let record: Rejected | undefined;
  await expect
    .poll(async () => {
      const { rejected } = await api<{ rejected: Rejected[] }>('GET', '/api/rejected?topic=job-created', undefined, site.admin);
      for (const each of rejected) {
        const whole = await api<{ key: { data: string } | null }>('GET', `/api/rejected/${each.id}`, undefined, site.admin);
        record = whole.key?.data === unique ? each : record;
      }
      return record;
    })
    .toBeDefined();
  await open('/rejected', site.admin);
  const cells = new RegExp(`${record?.function}${record?.topic}${record?.partition}${record?.offset}\\D`);
  await page.getByRole('row').filter({ hasText: cells }).getByRole('button').click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('Value', { exact: true }).click();
  for (const member of shown) {
    await expect(dialog.getByText(member)).toBeVisible();
  }
});
