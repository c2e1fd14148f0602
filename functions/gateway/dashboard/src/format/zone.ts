/** inZone formats an instant in a time zone: "Tue, 24 Nov 2026, 02:30 CET". */
export function inZone(at: string, timeZone: string): string {
  return format(timeZone).format(new Date(at));
}

function format(timeZone: string): Intl.DateTimeFormat {
  const shown: Intl.DateTimeFormatOptions = {
    weekday: 'short', day: '2-digit', month: 'short', year: 'numeric',
    hour: '2-digit', minute: '2-digit', timeZoneName: 'short',
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
