import { useMutation, useQuery } from '@tanstack/react-query';
import { useRouter } from '@tanstack/react-router';
import { useState, type FormEvent } from 'react';
import { answer, api, type Schemas } from '../../api/client';
import { asApiError } from '../../api/error';
import { jobTypesQuery } from '../../api/queries';
import { PageHeader } from '../../app/PageHeader';
import { paths } from '../../app/paths';
import { Button } from '../../ui/Button';
import { Card } from '../../ui/Card';
import { ErrorBox } from '../../ui/ErrorBox';
import { Field } from '../../ui/Field';
import { Skeleton } from '../../ui/Skeleton';
import { toast } from '../../ui/toasts';
import { OptionFields } from './OptionFields';
import { Preview } from './Preview';
import { NO_OPTIONS, requestOf, type Request } from './request';
import { initial, type Schema } from './schema';
import { SchemaField } from './SchemaField';
import './NewJob.css';

/** NewJobPage submits a job with a form, and shows how a program submits it. */
export default function NewJobPage() {
  const types = useQuery(jobTypesQuery);
  if (types.isPending) {
    return <Skeleton lines={8} />;
  }
  return (
    <>
      <PageHeader title="New job" lead="Fill in the form or the JSON: each follows the other" />
      {types.isError && <ErrorBox error={types.error} title="The job types cannot be listed" onRetry={() => void types.refetch()} />}
      {types.isSuccess && <NewJob types={types.data.jobTypes} />}
    </>
  );
}

const ANYTHING: Schema = {};

function NewJob({ types }: { types: Schemas['JobTypeInfo'][] }) {
  const router = useRouter();
  const [type, setType] = useState(types[0]);
  const [payload, setPayload] = useState(() => begin(types[0]));
  const [options, setOptions] = useState(NO_OPTIONS);
  const schema = (type?.schema ?? ANYTHING) as Schema;
  const request = requestOf(type?.name ?? '', payload, options);

  const submit = useMutation({
    mutationFn: (body: Request) => answer(api.POST('/api/jobs', { body: body as Schemas['JobRequest'] })),
    onSuccess: ({ jobId }) => {
      toast('The job is accepted.', { action: { label: 'Another one', run: () => router.history.push(paths.newJob()) } });
      router.history.push(paths.job(jobId));
    },
  });
  const details = submit.isError ? asApiError(submit.error).details : [];
  const errors = new Map(details.map((detail) => [detail.path, detail.message]));

  const choose = (name: string) => {
    const next = types.find((each) => each.name === name);
    setType(next);
    setPayload(begin(next));
    submit.reset();
  };

  const send = (event: FormEvent) => {
    event.preventDefault();
    submit.mutate(request);
  };

  return (
    <form className="new-grid" onSubmit={send} noValidate>
      <div className="stack">
        <Card title="Job">
          <div className="stack">
            <Field label="Job type" hint={type?.description ?? undefined} error={errors.get('jobType')}>
              {(props) => (
                <select {...props} className="input" value={type?.name} onChange={(event) => choose(event.target.value)}>
                  {types.map((each) => (
                    <option key={each.name} value={each.name}>
                      {each.name}
                      {each.workers === 0 ? ' (no worker runs it now)' : ''}
                    </option>
                  ))}
                </select>
              )}
            </Field>
            <SchemaField
              key={type?.name}
              schema={schema}
              root={schema}
              path="payload"
              name={schema.properties ? '' : 'payload'}
              required
              value={payload}
              errors={errors}
              onChange={setPayload}
            />
          </div>
        </Card>
        <Card title="Options">
          <OptionFields options={options} errors={errors} onChange={setOptions} />
        </Card>
        {submit.isError && <ErrorBox error={submit.error} title="The job was not accepted" />}
        <div>
          <Button type="submit" variant="primary" icon="new" busy={submit.isPending}>
            Submit the job
          </Button>
        </div>
      </div>
      <Preview request={request} payload={payload} onPayload={setPayload} />
    </form>
  );
}

function begin(type: Schemas['JobTypeInfo'] | undefined): unknown {
  const schema = (type?.schema ?? ANYTHING) as Schema;
  return initial(schema, schema);
}
