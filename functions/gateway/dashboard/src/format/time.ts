const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const instantFormat = new Intl.DateTimeFormat('en-GB', {
  year: 'numeric',
  month: 'short',
  day: '2-digit',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 3,
  timeZoneName: 'short',
});

const clockFormat = new Intl.DateTimeFormat('en-GB', {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 3,
});

/** The whole instant, in the browser's time zone, to the millisecond. */
export function instant(at: string | Date): string {
  return instantFormat.format(new Date(at));
}

/** The time of day, to the millisecond. */
export function clock(at: string | Date): string {
  return clockFormat.format(new Date(at));
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
  const local = new Date(at.getTime() - at.getTimezoneOffset() * MINUTE);
  return local.toISOString().slice(0, 19);
}

/** The instant in a datetime-local input; null if it is empty or invalid. */
export function fromLocalInput(value: string): string | null {
  const at = new Date(value);
  return value === '' || Number.isNaN(at.getTime()) ? null : at.toISOString();
}
