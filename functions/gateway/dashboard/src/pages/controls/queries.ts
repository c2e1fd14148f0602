import { answer, api, type Schemas } from '../../api/client';
import { useAction } from '../../api/useAction';

export type Control = Schemas['Control'];
export type Kind = Schemas['ControlKind'];
export type ControlRequest = Schemas['ControlRequest'];

/** Subject is what a control applies to: a queue, a job type, an owner or a fairness key. */
export type Subject = Pick<Control, 'kind' | 'name'>;

const KINDS: Record<Kind, string> = { queue: 'queue', type: 'job type', owner: 'owner', fairnessKey: 'fairness key' };

export function inWords({ kind, name }: Subject): string {
  return name === '*' ? `each ${KINDS[kind]}` : `the ${KINDS[kind]} ${name}`;
}

const at = ({ kind, name }: Subject) => ({ params: { path: { kind, name } } });
const CHANGES = ['controls', 'shares'];

interface Put {
  subject: Subject;
  body: ControlRequest;
  seen: number[]; // the versions that may be replaced; 0: there is none
}

export function usePutControl() {
  return useAction({
    run: ({ subject: { kind, name }, body, seen }: Put) =>
      answer(
        api.PUT('/api/controls/{kind}/{name}', {
          params: { path: { kind, name }, header: { 'If-Match': seen.map((version) => `W/"${version}"`).join(', ') } },
          body,
        }),
      ),
    done: (control) => result(`The limits of ${inWords(control)} are set.`, control),
    changes: CHANGES,
    quiet: true,
  });
}

/** usePausing pauses or resumes a subject. */
export function usePausing() {
  const action = useAction({
    run: ({ subject, pause }: { subject: Subject; pause: boolean }) =>
      answer(
        pause
          ? api.POST('/api/controls/{kind}/{name}/pause', at(subject))
          : api.POST('/api/controls/{kind}/{name}/resume', at(subject)),
      ),
    done: (control, { pause }) =>
      result(pause ? `No more jobs of ${inWords(control)} start.` : `Jobs of ${inWords(control)} start again.`, control),
    undo: (_, { subject, pause }) => ({ label: 'Undo', run: () => action.mutate({ subject, pause: !pause }) }),
    changes: CHANGES,
  });
  return action;
}

export function useRemove() {
  const again = usePutControl();
  return useAction({
    run: (control: Control) => answer(api.DELETE('/api/controls/{kind}/{name}', at(control))),
    done: (now, before) => result(`All limits of ${inWords(before)} are removed.`, now),
    undo: (now, { kind, name, paused, maxRunning, startsPerSecond, weight }) => ({
      label: 'Undo',
      run: () => again.mutate({ subject: { kind, name }, body: { paused, maxRunning, startsPerSecond, weight }, seen: [now.version, 0] }),
    }),
    changes: CHANGES,
  });
}

function result(text: string, control: Control): string {
  return control.applied ? text : `${text} The scheduler will apply it in a moment.`;
}
