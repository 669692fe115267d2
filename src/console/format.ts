// Numbers, sizes, times, and queries as command lines, for people. Pure.

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 });

/** The text for an unknown value. */
export const unknown = '–';

type Maybe = number | null | undefined;

const isKnown = (value: Maybe): value is number =>
  typeof value === 'number' && !Number.isNaN(value);

/** A whole number with separated thousands. */
export function formatCount(value: Maybe): string {
  return isKnown(value) ? whole.format(value) : unknown;
}

/** A number in at most three digits and a letter: 12.4K. */
export function formatShort(value: Maybe): string {
  return isKnown(value) ? short.format(value) : unknown;
}

/** A rate per second. */
export function formatRate(value: Maybe): string {
  if (!isKnown(value)) return unknown;
  if (value === 0) return '0';
  return value < 10 ? value.toFixed(1) : formatShort(value);
}

/** A span of milliseconds, in a fitting unit. */
export function formatSpan(ms: Maybe): string {
  if (!isKnown(ms)) return unknown;
  if (ms <= 0) return '0 ms';
  if (ms < 10) return `${Number(ms.toPrecision(2))} ms`;
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 60) return `${Number(seconds.toPrecision(3))} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** A size in bytes, in a fitting unit. */
export function formatBytes(bytes: Maybe): string {
  if (!isKnown(bytes)) return unknown;
  if (bytes < 1024) return `${bytes} B`;
  const kib = bytes / 1024;
  if (kib < 1024) return `${Number(kib.toPrecision(3))} KiB`;
  const mib = kib / 1024;
  return mib < 1024
    ? `${Number(mib.toPrecision(3))} MiB`
    : `${Number((mib / 1024).toPrecision(3))} GiB`;
}

/** A share of 1 in percent. A small share is never shown as 0. */
export function formatShare(share: Maybe): string {
  if (!isKnown(share)) return unknown;
  const percent = share * 100;
  if (percent > 0 && percent < 0.1) return '<0.1 %';
  return `${percent.toFixed(percent < 9.95 ? 1 : 0)} %`;
}

const two = (value: number) => String(value).padStart(2, '0');

/** The reader's local time of day. */
export function formatClock(at: Date): string {
  if (Number.isNaN(at.getTime())) return unknown;
  return [at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(':');
}

/** The time of day, with the date unless it is today. */
export function formatWhen(at: Date, now: Date = new Date()): string {
  return at.toDateString() === now.toDateString() ? formatClock(at) : formatMoment(at);
}

/** The reader's local date and time. */
export function formatMoment(at: Date): string {
  if (Number.isNaN(at.getTime())) return unknown;
  const day = [at.getFullYear(), two(at.getMonth() + 1), two(at.getDate())].join('-');
  return `${day} ${formatClock(at)}`;
}

/** The gateway's address, and whether it needs a token. */
export type Place = { readonly origin: string; readonly needsToken: boolean };

/**
 * The command for a shell. The token is a variable of the shell, so that logs and histories do not have it.
 * @param key the Idempotency-Key; null: none
 */
export function formatCurl(
  { origin, needsToken }: Place,
  path: string,
  body: string,
  key: string | null = null,
): string {
  const parts = ['curl -sS', quote(`${origin}${path}`), "-H 'Content-Type: application/json'"];
  if (key !== null) parts.push('-H', quote(`Idempotency-Key: ${key}`));
  if (needsToken) parts.push('-H "Authorization: Bearer $DBHTTPD_TOKEN"');
  parts.push('--data-raw', quote(body));
  return parts.join(' ');
}

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** A number of rows, in words. @param isCut whether there are more */
export function formatRows(count: number, isCut: boolean): string {
  const rows = `${formatCount(count)} ${count === 1 ? 'row' : 'rows'}`;
  return isCut ? `${rows}, cut: there are more` : rows;
}
