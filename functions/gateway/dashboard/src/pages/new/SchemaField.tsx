import { isObject, parse } from '../../api/json';
import { Button, IconButton } from '../../ui/Button';
import { Field } from '../../ui/Field';
import { JsonField } from './JsonField';
import { childPath, initial, kindOf, resolve, variantOf, variantsOf, withMember, type Schema } from './schema';

export interface FieldProps {
  schema: Schema;
  root: Schema;
  path: string;
  name: string;
  required: boolean;
  value: unknown;
  errors: ReadonlyMap<string, string>; // by path
  onChange: (value: unknown) => void; // undefined removes the member
}

/** SchemaField edits a value by its schema; an error of the API is shown at its field. */
export function SchemaField(props: FieldProps) {
  const schema = resolve(props.schema, props.root);
  const resolved = { ...props, schema };
  switch (kindOf(schema, props.root)) {
    case 'constant':
      return null;
    case 'object':
      return <ObjectField {...resolved} />;
    case 'variants':
      return <VariantField {...resolved} />;
    case 'list':
      return <ListField {...resolved} />;
    case 'json':
      return <JsonField {...resolved} />;
    default:
      return <SimpleField {...resolved} />;
  }
}

function labelOf({ schema, name, required }: FieldProps) {
  return (
    <>
      {schema.title ?? name}
      {!required && <span className="muted optional"> optional</span>}
    </>
  );
}

function ObjectField(props: FieldProps) {
  const { schema, root, path, value, errors, onChange } = props;
  const own = errors.get(path);
  return (
    <fieldset className="schema-object">
      {props.name !== '' && <legend>{labelOf(props)}</legend>}
      {own && <p className="field-error small">{own}</p>}
      {Object.entries(schema.properties ?? {}).map(([member, property]) => (
        <SchemaField
          key={member}
          schema={property}
          root={root}
          path={childPath(path, member)}
          name={member}
          required={schema.required?.includes(member) ?? false}
          value={isObject(value) ? value[member] : undefined}
          errors={errors}
          onChange={(next) => onChange(withMember(value, member, next))}
        />
      ))}
    </fieldset>
  );
}

function VariantField(props: FieldProps) {
  const { schema, root, value, onChange } = props;
  const variants = variantsOf(schema, root);
  const current = variantOf(schema, root, value);
  return (
    <div className="stack-small">
      <select
        className="input"
        aria-label={`Kind of ${schema.title ?? props.name}`}
        value={current?.name}
        onChange={(event) => onChange(initial(variants.find((variant) => variant.name === event.target.value)?.schema ?? {}, root))}
      >
        {variants.map((variant) => (
          <option key={variant.name} value={variant.name}>
            {variant.schema.title ?? variant.name}
          </option>
        ))}
      </select>
      {current && <ObjectField {...props} schema={current.schema} name="" />}
    </div>
  );
}

function ListField(props: FieldProps) {
  const { schema, root, path, name, value, errors, onChange } = props;
  const items = Array.isArray(value) ? (value as unknown[]) : [];
  const own = errors.get(path);
  const change = (next: unknown[]) => onChange(next.length === 0 && !props.required ? undefined : next);
  return (
    <fieldset className="schema-object">
      <legend>{labelOf(props)}</legend>
      {schema.description && <p className="muted small">{schema.description}</p>}
      {own && <p className="field-error small">{own}</p>}
      <ol className="schema-list">
        {items.map((item, i) => (
          <li key={i}>
            <div className="grow">
              <SchemaField
                schema={schema.items ?? {}}
                root={root}
                path={childPath(path, i)}
                name={`${name} ${i + 1}`}
                required
                value={item}
                errors={errors}
                onChange={(next) => change(items.map((each, at) => (at === i ? next : each)))}
              />
            </div>
            <IconButton icon="trash" label={`Remove ${name} ${i + 1}`} onClick={() => change(items.filter((_, at) => at !== i))} />
          </li>
        ))}
      </ol>
      <Button small icon="new" onClick={() => change([...items, initial(schema.items ?? {}, root)])}>
        Add to {name}
      </Button>
    </fieldset>
  );
}

/** typed returns the number of an input as it was typed, if JSON has this form. */
function typed({ value, valueAsNumber }: HTMLInputElement): unknown {
  try {
    return parse(value);
  } catch {
    return valueAsNumber; // such as .5
  }
}

const LONG = 255;

function SimpleField(props: FieldProps) {
  const { schema, root, path, value, errors, onChange } = props;
  const kind = kindOf(schema, root);
  const text = value === undefined || value === null ? '' : String(value);
  const setText = (next: string) => onChange(next === '' && !props.required ? undefined : next);
  if (kind === 'flag') {
    return (
      <label className="check">
        <input type="checkbox" checked={value === true} onChange={(event) => onChange(event.target.checked)} />
        {labelOf(props)}
      </label>
    );
  }
  return (
    <Field label={labelOf(props)} hint={schema.description} error={errors.get(path)}>
      {(field) => {
        if (kind === 'choice') {
          return (
            <select {...field} className="input" value={text} onChange={(event) => setText(event.target.value)}>
              {!props.required && <option value="">–</option>}
              {schema.enum?.map((option) => (
                <option key={String(option)} value={String(option)}>
                  {String(option)}
                </option>
              ))}
            </select>
          );
        }
        if (kind === 'number') {
          return (
            <input
              {...field}
              className="input"
              type="number"
              step={schema.type === 'integer' ? 1 : 'any'}
              min={schema.minimum}
              max={schema.maximum}
              value={text}
              onChange={(event) => onChange(event.target.value === '' ? undefined : typed(event.target))}
            />
          );
        }
        if ((schema.maxLength ?? Infinity) > LONG) {
          return <textarea {...field} className="input" rows={3} value={text} onChange={(event) => setText(event.target.value)} />;
        }
        return <input {...field} className="input" value={text} maxLength={schema.maxLength} onChange={(event) => setText(event.target.value)} />;
      }}
    </Field>
  );
}
