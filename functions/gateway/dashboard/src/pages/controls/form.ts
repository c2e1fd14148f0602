import type { Control, ControlRequest, Kind } from './queries';

/** Draft is a control in its form, as texts. */
export interface Draft {
  kind: Kind;
  name: string;
  paused: boolean;
  most: string;
  rate: string;
  weight: string;
}

/** draft returns the form of a control; a new one pauses. */
export function draft(control: Control | undefined, kind: Kind, name: string): Draft {
  return {
    kind: control?.kind ?? kind,
    name: control?.name ?? name,
    paused: control?.paused ?? true,
    most: String(control?.maxRunning ?? ''),
    rate: String(control?.startsPerSecond ?? ''),
    weight: String(control?.weight ?? ''),
  };
}

/** hasWeight reports whether a control can have a weight: that of one fairness key can. */
export function hasWeight({ kind, name }: Draft): boolean {
  return kind === 'fairnessKey' && name.trim() !== '*';
}

/** toRequest returns the request for the API. */
export function toRequest(from: Draft): ControlRequest {
  return { paused: from.paused, maxRunning: limit(from.most), startsPerSecond: limit(from.rate), weight: hasWeight(from) ? limit(from.weight) : null };
}

/** limit parses a field: empty means no limit. */
export function limit(text: string): number | null {
  return text.trim() === '' ? null : Number(text.replace(',', '.'));
}

/** wrong returns the error of a field that could not be sent as JSON. */
export function wrong(text: string): string | undefined {
  const value = limit(text);
  return value !== null && !Number.isFinite(value) ? 'must be a number, or empty for no limit' : undefined;
}
