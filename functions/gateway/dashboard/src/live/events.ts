import { parse } from '../api/json';

/** StreamEvent is an event of GET /api/stream: its id, its name and its data, which is JSON. */
export interface StreamEvent {
  id: string;
  name: string;
  data: unknown;
}

/**
 * eventParser reads Server-Sent Events from pieces of text that may end anywhere. It passes on each event once its blank
 * line has arrived, and skips comments.
 */
export function eventParser(give: (event: StreamEvent) => void): (text: string) => void {
  let rest = '';
  let id = '';
  let name = '';
  let data: string[] = [];

  const line = (text: string) => {
    if (text === '') {
      if (data.length > 0) {
        give({ id, name, data: parse(data.join('\n')) });
      }
      name = '';
      data = [];
      return;
    }
    const [, field, value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(text) ?? [];
    if (field === 'id') {
      id = value;
    } else if (field === 'event') {
      name = value;
    } else if (field === 'data') {
      data.push(value);
    }
  };

  return (text) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    lines.forEach((each) => line(each.replace(/\r$/, '')));
  };
}
