import type { HTMLAttributes } from 'react';
import { Field } from '../../ui/Field';
import '../../ui/form.css';
import type { Options } from './request';

interface Option {
  name: keyof Options;
  member: string; // its name in the API
  label: string;
  hint: string;
  mode?: HTMLAttributes<HTMLInputElement>['inputMode'];
}

const OPTIONS: readonly Option[] = [
  { name: 'queue', member: 'queue', label: 'Queue', hint: 'Empty: default' },
  { name: 'priority', member: 'priority', label: 'Priority', hint: '0 to 9, the higher the sooner', mode: 'numeric' },
  { name: 'delaySeconds', member: 'delayMs', label: 'Delay in seconds', hint: 'Empty: it runs at once', mode: 'decimal' },
  { name: 'maxRetryCount', member: 'maxRetryCount', label: 'Retries', hint: 'Empty: as the installation has it', mode: 'numeric' },
  { name: 'tags', member: 'tags', label: 'Tags', hint: 'Separated by commas' },
  { name: 'idempotencyKey', member: 'idempotencyKey', label: 'Idempotency key', hint: 'The same key again is the same job' },
  { name: 'orderingKey', member: 'orderingKey', label: 'Ordering key', hint: 'Jobs of one key run one after another' },
  { name: 'callbackUrl', member: 'callbackUrl', label: 'Callback URL', hint: 'Gets the result when the job ends' },
];

/** POLICIES are the submit policies. The key is a policy's own; what is beside it applies only with the key. */
const POLICIES: readonly Option[] = [
  { name: 'uniqueKey', member: 'unique.key', label: 'Unique key', hint: 'No new job while one with the key is active' },
  { name: 'uniqueFor', member: 'unique.for', label: 'Unique for', hint: 'A duration such as 24h: only jobs accepted within it count' },
  { name: 'singletonKey', member: 'singleton.key', label: 'Singleton key', hint: 'Jobs of one key run one at a time' },
  { name: 'singletonElse', member: 'singleton.else', label: 'Singleton else', hint: 'queue (as by default) or drop' },
  { name: 'throttleKey', member: 'throttle.key', label: 'Throttle key', hint: 'Jobs of one key start apart' },
  { name: 'throttleSeconds', member: 'throttle.perMs', label: 'Seconds between starts', hint: 'Of the throttle key', mode: 'decimal' },
  { name: 'debounceKey', member: 'debounce.key', label: 'Debounce key', hint: 'The last of a burst of requests is the job' },
  { name: 'debounceSeconds', member: 'debounce.delayMs', label: 'Seconds without a request', hint: 'Of the debounce key', mode: 'decimal' },
];

interface Props {
  options: Options;
  errors: ReadonlyMap<string, string>;
  onChange: (options: Options) => void;
}

export function OptionFields(props: Props) {
  const { options, errors } = props;
  const used = POLICIES.some(({ name, member }) => options[name] !== '' || errors.has(member));
  return (
    <>
      <Fields {...props} of={OPTIONS} />
      <details className="more-options" open={used || undefined}>
        <summary>More: unique, single, throttled and debounced jobs</summary>
        <Fields {...props} of={POLICIES} />
      </details>
    </>
  );
}

function Fields({ of, options, errors, onChange }: Props & { of: readonly Option[] }) {
  return (
    <div className="form-row">
      {of.map(({ name, member, label, hint, mode }) => (
        <Field key={name} label={label} hint={hint} error={errors.get(member)}>
          {(props) => (
            <input
              {...props}
              className="input"
              inputMode={mode}
              spellCheck={false}
              value={options[name]}
              onChange={(event) => onChange({ ...options, [name]: event.target.value })}
            />
          )}
        </Field>
      ))}
    </div>
  );
}
