// The demo's names: many languages, no old code beside its new one.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  likelyLanguage,
  listCurrencies,
  listLanguages,
  listNames,
} from '../../../../scripts/world/cldr.ts';

test('lists languages once, by their modern codes', () => {
  const codes = listLanguages().map(([code]) => code);
  assert.equal(new Set(codes).size, codes.length);
  assert.ok(codes.length > 400);
  assert.ok(codes.includes('he') && !codes.includes('iw'));
});

test('knows names in scripts other than Latin', () => {
  const names = new Map(listNames('region', ['FR']).map(([, language, name]) => [language, name]));
  assert.ok(names.size >= 40);
  assert.equal(names.get('ja'), 'フランス');
  assert.equal(names.get('en'), 'France');
});

test('knows the digits of a currency and the language of a country', () => {
  const digits = new Map(listCurrencies().map(([code, , , number]) => [code, number]));
  assert.deepEqual([digits.get('EUR'), digits.get('JPY')], [2, 0]);
  assert.deepEqual([likelyLanguage('JP'), likelyLanguage('BR')], ['ja', 'pt']);
});
