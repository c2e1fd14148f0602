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

interface Props {
  options: Options;
  errors: ReadonlyMap<string, string>;
  onChange: (options: Options) => void;
}

export function OptionFields({ options, errors, onChange }: Props) {
  return (
    <div className="form-row">
      {OPTIONS.map(({ name, member, label, hint, mode }) => (
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
