/** inZone formats an instant in a time zone: "Tue, 24 Nov 2026, 02:30 CET". */
export function inZone(at: string, timeZone: string, seconds = false): string {
  return format(timeZone, seconds).format(new Date(at));
}

/** withSeconds returns whether some of the times differ from whole minutes: then all show their seconds. */
export function withSeconds(times: readonly string[]): boolean {
  return times.some((at) => new Date(at).getUTCSeconds() !== 0);
}

function format(timeZone: string, seconds: boolean): Intl.DateTimeFormat {
  const shown: Intl.DateTimeFormatOptions = {
    weekday: 'short', day: '2-digit', month: 'short', year: 'numeric',
    hour: '2-digit', minute: '2-digit', timeZoneName: 'short', ...(seconds && { second: '2-digit' }),
  };
  try {
    return new Intl.DateTimeFormat('en-GB', { ...shown, timeZone });
  } catch {
    return new Intl.DateTimeFormat('en-GB', { ...shown, timeZone: 'UTC' }); // the browser does not know the zone
  }
}

/** timeZones returns the names of the time zones of this browser, UTC first. */
export function timeZones(): string[] {
  return ['UTC', ...Intl.supportedValuesOf('timeZone').filter((zone) => zone !== 'UTC')];
}
