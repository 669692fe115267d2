// MySQL's sets of GTIDs: parse, format, unite, subtract, compare. Pure.

/** A range of transaction numbers, with both ends. */
type Interval = readonly [first: bigint, last: bigint];

/** For each source (`uuid` or `uuid:tag`), its numbers in ascending ranges that do not touch. */
export type GtidSets = ReadonlyMap<string, readonly Interval[]>;

/** MySQL's manual, "GTID Format and Storage"; 8.3 has added tags. */
const source = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const tag = /^[a-z_][a-z0-9_]{0,31}$/i;
/** `5`, `1-5`, and in gtid_owned `5#12`, with a thread id. */
const range = /^(\d{1,20})(?:-(\d{1,20}))?(?:#\d+)?$/;

/** Reads `uuid:1-5:7,uuid:tag:1`; null: the text is no such list. */
export function parseSets(text: string): GtidSets | null {
  const found = new Map<string, Interval[]>();
  for (const part of text.split(',')) {
    if (part.trim() === '') continue;
    const [uuid = '', ...pieces] = part.trim().split(':');
    if (!source.test(uuid) || pieces.length === 0) return null;
    let key = uuid.toLowerCase();
    for (const piece of pieces) {
      const numbers = range.exec(piece);
      if (numbers === null && !tag.test(piece)) return null;
      if (numbers === null) key = `${uuid.toLowerCase()}:${piece.toLowerCase()}`;
      else found.set(key, [...(found.get(key) ?? []), intervalOf(numbers)]);
    }
  }
  return new Map([...found].map(([key, intervals]) => [key, join(intervals)]));
}

function intervalOf([, first = '0', last = first]: RegExpExecArray): Interval {
  return [BigInt(first), BigInt(last)];
}

/** As MySQL reads them. */
export function formatSets(sets: GtidSets): string {
  return [...sets]
    .map(([key, intervals]) => [key, ...intervals.map(formatInterval)].join(':'))
    .join();
}

function formatInterval([first, last]: Interval): string {
  return first === last ? `${first}` : `${first}-${last}`;
}

/** The union of both. */
export function uniteSets(one: GtidSets, other: GtidSets): GtidSets {
  const united = new Map(one);
  for (const [key, intervals] of other) {
    united.set(key, join([...(united.get(key) ?? []), ...intervals]));
  }
  return united;
}

/** All that `one` has and `other` has not. */
export function subtractSets(one: GtidSets, other: GtidSets): GtidSets {
  const left = new Map<string, readonly Interval[]>();
  for (const [key, intervals] of one) {
    const rest = (other.get(key) ?? []).reduce(cutOut, intervals);
    if (rest.length > 0) left.set(key, rest);
  }
  return left;
}

function cutOut(from: readonly Interval[], [first, last]: Interval): readonly Interval[] {
  return from.flatMap(([low, high]): Interval[] => {
    if (high < first || last < low) return [[low, high]];
    const below: Interval[] = low < first ? [[low, first - 1n]] : [];
    return high > last ? [...below, [last + 1n, high]] : below;
  });
}

/** Whether `one` has everything that `other` has. */
export function holdsSets(one: GtidSets, other: GtidSets): boolean {
  return [...other].every(([key, intervals]) => {
    const own = one.get(key) ?? [];
    return intervals.every(([from, to]) =>
      own.some(([first, last]) => first <= from && to <= last),
    );
  });
}

function join(intervals: readonly Interval[]): readonly Interval[] {
  const joined: Interval[] = [];
  for (const [first, last] of intervals.toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))) {
    const before = joined.at(-1);
    if (before === undefined || first > before[1] + 1n) joined.push([first, last]);
    else if (last > before[1]) joined[joined.length - 1] = [before[0], last];
  }
  return joined;
}
