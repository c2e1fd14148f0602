import { useState } from 'react';
import { base } from '../../api/base';
import { asksForKey, useMe } from '../../api/me';
import { Card } from '../../ui/Card';
import { Code } from '../../ui/Code';
import { Segments } from '../../ui/Segments';
import { JsonField } from './JsonField';
import { curlOf, eventOf, type Request } from './request';

const VIEWS = [
  { value: 'json', label: 'Payload' },
  { value: 'curl', label: 'curl' },
  { value: 'event', label: 'CloudEvent' },
] as const;

interface Props {
  request: Request;
  payload: unknown;
  onPayload: (payload: unknown) => void;
}

const NO_ERRORS: ReadonlyMap<string, string> = new Map();

/** Preview shows the payload of the form as JSON, which can be edited here, and the requests that submit it. */
export function Preview({ request, payload, onPayload }: Props) {
  const withKey = asksForKey(useMe());
  const [view, setView] = useState<(typeof VIEWS)[number]['value']>('json');
  return (
    <Card title="As text" aside={<Segments label="Show as" value={view} options={VIEWS} onChange={setView} />} className="preview">
      {view === 'json' && (
        <JsonField schema={{ title: 'Payload' }} root={{}} path="payload" name="payload" required value={payload} errors={NO_ERRORS} onChange={onPayload} />
      )}
      {view === 'curl' && <Code text={curlOf(request, location.origin + base, withKey)} label="the curl" />}
      {view === 'event' && <Code text={eventOf(request, location.origin + base, withKey)} label="the CloudEvent" />}
    </Card>
  );
}
