// Rows out of the tzdata package: countries, places with coordinates, zones and their transitions.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseTzif } from './tzif.ts';

/** Values of one row, in the order of the table's columns as the loader names them. */
export type Row = readonly (string | number | boolean | null)[];

const directory = '/usr/share/zoneinfo';

/** ISO 3166: code and name. */
export function readCountries(): { readonly code: string; readonly name: string }[] {
  return readTable('iso3166.tab').map(([code = '', name = '']) => ({ code, name }));
}

/** Every zone, with its country if it has one. */
export function readZones(): Row[] {
  const countryOf = new Map(
    readTable('zone.tab').map(([country = '', , zone = '']) => [zone, country]),
  );
  const names = new Set([...countryOf.keys(), ...Intl.supportedValuesOf('timeZone')]);
  return [...names]
    .filter((name) => existsSync(join(directory, name)))
    .sort()
    .map((name) => [name, countryOf.get(name) ?? null]);
}

/** name, country, timezone, latitude, longitude, remark. */
export function readPlaces(): Row[] {
  return readTable('zone.tab').map(([country = '', position = '', zone = '', remark]) => {
    const [latitude, longitude] = parsePosition(position);
    const name = zone.slice(zone.lastIndexOf('/') + 1).replaceAll('_', ' ');
    return [name, country, zone, latitude, longitude, remark ?? null];
  });
}

/** timezone, at, offset, is_dst, abbreviation; from 1800 on, which leaves out only markers. */
export function readTransitions(zones: readonly Row[]): Row[] {
  const from = Date.UTC(1800, 0) / 1000;
  return zones.flatMap(([zone]) =>
    parseTzif(readFileSync(join(directory, String(zone))))
      .filter(({ at }) => at >= from)
      .map(({ at, offsetSeconds, isDst, abbreviation }) => [
        String(zone),
        new Date(at * 1000).toISOString().slice(0, 19).replace('T', ' '),
        offsetSeconds,
        isDst,
        abbreviation,
      ]),
  );
}

function readTable(name: string): string[][] {
  return readFileSync(join(directory, name), 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => line.split('\t'));
}

/** ±DDMM±DDDMM or ±DDMMSS±DDDMMSS (ISO 6709) in degrees, as decimal text with five places. */
function parsePosition(position: string): [string, string] {
  const match = /^([+-])(\d{2})(\d{2})(\d{2})?([+-])(\d{3})(\d{2})(\d{2})?$/.exec(position);
  if (match === null) throw new Error(`no position: ${position}`);
  return [toDegrees(match.slice(1, 5)), toDegrees(match.slice(5, 9))];
}

function toDegrees([sign, degrees, minutes, seconds]: (string | undefined)[]): string {
  const value = Number(degrees) + Number(minutes) / 60 + Number(seconds ?? 0) / 3600;
  return (sign === '-' ? -value : value).toFixed(5);
}
