const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 });

/** 1234567 → "1,234,567". */
export function count(n: number): string {
  return whole.format(n);
}

/** 1234567 → "1.23M"; below ten thousand as count. */
export function compact(n: number): string {
  return Math.abs(n) < 10_000 ? count(n) : short.format(n);
}

/** A rate in events a second: "0", "0.04/s", "7.3/s", "1,240/s". */
export function perSecond(n: number): string {
  if (n === 0) {
    return '0/s';
  }
  const digits = n < 0.1 ? 2 : n < 100 ? 1 : 0;
  if (n < 0.005) {
    return '<0.01/s';
  }
  return `${new Intl.NumberFormat('en', { maximumFractionDigits: digits }).format(n)}/s`;
}

/** A share as a percentage: "0 %", "<0.1 %", "4.2 %", "100 %". */
export function share(part: number, total: number): string {
  if (total === 0 || part === 0) {
    return '0 %';
  }
  const percent = (part / total) * 100;
  if (percent < 0.1) {
    return '<0.1 %';
  }
  if (percent > 99.9 && part < total) {
    return '>99.9 %';
  }
  return `${percent < 10 ? Number(percent.toFixed(1)) : Math.round(percent)} %`;
}

/** 1536 → "1.5 KiB". */
export function bytes(n: number): string {
  if (n < 1024) {
    return `${n} B`;
  }
  const units = ['KiB', 'MiB', 'GiB'];
  let value = n / 1024;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

/** 1 job, 2 jobs. */
export function plural(n: number, one: string, many = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}
