// The reader of compiled time zone files, judged by another implementation of the same data: Intl.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readPlaces, readTransitions, readZones } from '../../../../scripts/world/tzdata.ts';
import { parseTzif } from '../../../../scripts/world/tzif.ts';

test('finds the offsets that Intl knows, just before and just after each change of the clocks', () => {
  for (const zone of ['Europe/Berlin', 'America/New_York', 'Asia/Kathmandu', 'Pacific/Apia']) {
    const rows = readTransitions([[zone]]).map(([, at, offset]) => ({
      at: Date.parse(`${String(at).replace(' ', 'T')}Z`),
      offset: Number(offset),
    }));
    const known = rows.filter(({ at }) => at > Date.UTC(1970, 0) && at < Date.UTC(2024, 0));
    assert.ok(known.length > 0, zone);
    for (const { at, offset } of known)
      assert.equal(offsetByIntl(zone, at), offset, `${zone} ${at}`);
  }
});

test('refuses a file that is none', () => {
  assert.throws(() => parseTzif(Buffer.from('TZdata, not a compiled file')), /not a TZif file/);
});

test('gives every place a zone that is in the list, and coordinates on earth', () => {
  const zones = new Set(readZones().map(([name]) => name));
  const places = readPlaces();
  assert.ok(places.length > 300);
  for (const [name, , zone, latitude, longitude] of places) {
    assert.ok(zones.has(zone ?? null), String(name));
    assert.ok(Math.abs(Number(latitude)) <= 90 && Math.abs(Number(longitude)) <= 180, String(name));
  }
});

function offsetByIntl(zone: string, at: number): number {
  const parts = new Intl.DateTimeFormat('en', { timeZone: zone, timeZoneName: 'longOffset' });
  const name = parts.formatToParts(at).find(({ type }) => type === 'timeZoneName')?.value ?? '';
  const match = /GMT(?:([+-])(\d\d):(\d\d)(?::(\d\d))?)?/.exec(name);
  const [, sign, hours = '0', minutes = '0', seconds = '0'] = match ?? [];
  const value = Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds);
  return sign === '-' ? -value : value;
}
