// Dates and times as MySQL has them: without a time zone, with up to six digits of a second.

const days = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
/** MySQL's TIME is at most this, on both sides of 0. */
const maxTimeMicroseconds = (838 * 3600 + 59 * 60 + 59) * 1_000_000;

/** `2026-02-28`; null: it is no date, or a day that does not exist. */
export function parseDate(text: string): string | null {
  const found = /^(\d{4})-(\d\d)-(\d\d)$/.exec(text);
  if (found === null) return null;
  const [year, month, day] = [Number(found[1]), Number(found[2]), Number(found[3])];
  const isLeap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  const last = month === 2 && isLeap ? 29 : days[month - 1];
  return year >= 1 && last !== undefined && day >= 1 && day <= last ? text : null;
}

/** `2026-02-28 10:30:00.5`, also with a T, and without seconds; null: it is none. */
export function parseDateTime(text: string): string | null {
  const found = /^(.{10})[ T]([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d(?:\.\d{1,6})?))?$/.exec(text);
  if (found === null) return null;
  const date = parseDate(found[1] ?? '');
  return date === null ? null : `${date} ${found[2]}:${found[3]}:${found[4] ?? '00'}`;
}

/** `10:30:00.5`, also negative, beyond a day, and without seconds; null: it is none, or beyond MySQL's. */
export function parseTime(text: string): string | null {
  const found = /^(-?)(\d{2,3}):([0-5]\d)(?::([0-5]\d(?:\.\d{1,6})?))?$/.exec(text);
  if (found === null) return null;
  const time = `${found[1]}${found[2]}:${found[3]}:${found[4] ?? '00'}`;
  return Math.abs(timeMicroseconds(time)) <= maxTimeMicroseconds ? time : null;
}

/** @param time what `parseTime` returned */
function timeMicroseconds(time: string): number {
  const [hours = '', minutes = '', seconds = ''] = time.replace('-', '').split(':');
  const wholeSeconds = Number(hours) * 3600 + Number(minutes) * 60;
  const size = wholeSeconds * 1_000_000 + Math.round(Number(seconds) * 1_000_000);
  return time.startsWith('-') ? -size : size;
}

/** Below 0 if the first is earlier. Both are what the functions above returned. */
export function compareMoments(
  kind: 'date' | 'datetime' | 'time',
  one: string,
  other: string,
): number {
  if (kind === 'time') return timeMicroseconds(one) - timeMicroseconds(other);
  // Digits of a second may be missing at the end: a shorter text that is the beginning of the other may be equal.
  const [first, second] = [padded(one), padded(other)];
  return first < second ? -1 : first > second ? 1 : 0;
}

function padded(moment: string): string {
  return moment.includes('.') ? moment.padEnd(26, '0') : `${moment}.000000`;
}
