import { useState, type FormEvent } from 'react';
import { answer, api, type Schemas } from '../../api/client';
import { useAction } from '../../api/useAction';
import { plural } from '../../format/number';
import { Button } from '../../ui/Button';
import { Dialog } from '../../ui/Dialog';
import { ErrorBox } from '../../ui/ErrorBox';
import { Field } from '../../ui/Field';
import { dataFor } from './eventData';

/** SendEventDialog sends an event for which a handler waits, for example the approval of a person. */
export function SendEventDialog({ event, onClose }: { event: Schemas['EventWait']; onClose: () => void }) {
  const [text, setText] = useState(() => JSON.stringify(dataFor(event.match ?? {}), null, 2));
  const wrong = problemOf(text);
  const send = useAction({
    run: async () =>
      (await answer(
        api.POST('/events', {
          headers: { 'Content-Type': 'application/cloudevents+json' },
          body: {
            specversion: '1.0',
            id: crypto.randomUUID(),
            source: event.source ?? '/dashboard',
            type: event.type,
            ...(event.subject != null && { subject: event.subject }),
            datacontenttype: 'application/json',
            data: JSON.parse(text) as unknown,
          },
        }),
      )) as Schemas['EventKept'],
    done: ({ jobs }) => `The event is sent: ${plural(jobs, 'job')} waited for it`,
    changes: ['job', 'jobs'],
    quiet: true,
  });

  const submit = (form: FormEvent) => {
    form.preventDefault();
    if (wrong === undefined) {
      send.mutate(undefined, { onSuccess: onClose });
    }
  };
  return (
    <Dialog title={`Send ${event.type}`} onClose={onClose}>
      <form className="stack" onSubmit={submit}>
        <Field label="Data" hint="JSON. The handler continues with it. The values that the job waits for are there already." error={wrong}>
          {(props) => (
            <textarea {...props} className="input mono" rows={8} spellCheck={false} value={text} onChange={(change) => setText(change.target.value)} />
          )}
        </Field>
        {send.isError && <ErrorBox error={send.error} title="The event is not sent" />}
        <div className="dialog-actions">
          <Button type="submit" variant="primary" busy={send.isPending} disabled={wrong !== undefined}>
            Send
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

function problemOf(text: string): string | undefined {
  try {
    JSON.parse(text);
    return undefined;
  } catch {
    return 'Enter JSON.';
  }
}
