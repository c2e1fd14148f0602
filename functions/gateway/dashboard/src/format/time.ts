import { times } from './times';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** zoned returns formats of the same form for the zones in which times are shown: the browser's, unless the user has chosen UTC. */
export function zoned(form: Intl.DateTimeFormatOptions): (at: string | Date) => string {
  const local = new Intl.DateTimeFormat('en-GB', form);
  const utc = new Intl.DateTimeFormat('en-GB', { ...form, timeZone: 'UTC' });
  return (at) => (times() === 'utc' ? utc : local).format(new Date(at));
}

const day: Intl.DateTimeFormatOptions = { month: 'short', day: '2-digit' };
const time: Intl.DateTimeFormatOptions = { hour: '2-digit', minute: '2-digit', second: '2-digit' };

/** The whole instant, with its time zone, to the millisecond. */
export const instant = zoned({ ...day, ...time, year: 'numeric', fractionalSecondDigits: 3, timeZoneName: 'short' });

/** The time of day, to the millisecond. */
export const clock = zoned({ ...time, fractionalSecondDigits: 3 });

const date = zoned(day);
const year = zoned({ year: 'numeric' });
const seconds = zoned(time);
const minutes = zoned({ hour: '2-digit', minute: '2-digit' });

/** moment is an instant in a few words: "29 Nov, 06:35:12", with the year if it is another one. */
export function moment(at: string | Date, now: Date, form: typeof seconds = seconds): string {
  const years = year(at) === year(now) ? '' : ` ${year(at)}`;
  return `${date(at)}${years}, ${form(at)}`;
}

/** The same to the minute. */
export const momentToMinute = (at: string | Date, now: Date) => moment(at, now, minutes);

/** The time zone of inputs, in words. */
export function inputZone(): string {
  return times() === 'utc' ? 'In UTC.' : 'In your time zone.';
}

/** midnight returns when a day began, the given number of days before that of now. */
export function midnight(now: Date, daysBefore: number): Date {
  const at = new Date(now);
  if (times() === 'utc') {
    at.setUTCHours(0, 0, 0, 0);
    at.setUTCDate(at.getUTCDate() - daysBefore);
  } else {
    at.setHours(0, 0, 0, 0);
    at.setDate(at.getDate() - daysBefore);
  }
  return at;
}

/** A length of time in at most two units: "850 ms", "2.4 s", "3 min 12 s", "2 h 5 min", "3 d 4 h". */
export function duration(ms: number): string {
  if (ms < 0) {
    return `-${duration(-ms)}`;
  }
  if (ms < SECOND) {
    return `${ms < 10 ? Number(ms.toFixed(1)) : Math.round(ms)} ms`;
  }
  if (ms < 10 * SECOND) {
    return `${Number((Math.floor(ms / 10) / 100).toFixed(2))} s`;
  }
  if (ms < MINUTE) {
    return `${Math.floor(ms / SECOND)} s`;
  }
  if (ms < HOUR) {
    return two(ms, MINUTE, 'min', SECOND, 's');
  }
  if (ms < DAY) {
    return two(ms, HOUR, 'h', MINUTE, 'min');
  }
  return two(ms, DAY, 'd', HOUR, 'h');
}

function two(ms: number, big: number, bigUnit: string, small: number, smallUnit: string): string {
  const rest = Math.floor((ms % big) / small);
  return `${Math.floor(ms / big)} ${bigUnit}${rest > 0 ? ` ${rest} ${smallUnit}` : ''}`;
}

/** How far an instant is from now, in one unit: "just now", "12 s ago", "in 3 min", "5 d ago". */
export function relative(at: string | Date, now: Date): string {
  const ms = new Date(at).getTime() - now.getTime();
  const size = Math.abs(ms);
  if (size < SECOND) {
    return 'just now';
  }
  const text = one(size);
  return ms < 0 ? `${text} ago` : `in ${text}`;
}

function one(ms: number): string {
  if (ms < MINUTE) {
    return `${Math.floor(ms / SECOND)} s`;
  }
  if (ms < HOUR) {
    return `${Math.floor(ms / MINUTE)} min`;
  }
  if (ms < DAY) {
    return `${Math.floor(ms / HOUR)} h`;
  }
  return `${Math.floor(ms / DAY)} d`;
}

/** The value of a datetime-local input, which has no time zone, for an instant. */
export function toLocalInput(at: Date): string {
  const local = times() === 'utc' ? at : new Date(at.getTime() - at.getTimezoneOffset() * MINUTE);
  return local.toISOString().slice(0, 19);
}

/** The instant in a datetime-local input; null if it is empty or invalid. */
export function fromLocalInput(value: string): string | null {
  const at = new Date(times() === 'utc' ? `${value}Z` : value);
  return value === '' || Number.isNaN(at.getTime()) ? null : at.toISOString();
}
