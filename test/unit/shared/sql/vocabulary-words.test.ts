// Words are found in any case, and nothing else is.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { WordTable } from '../../../../src/shared/sql/vocabulary.ts';

const words = Array.from({ length: 500 }, (_, n) => `W${n.toString(36).toUpperCase()}_${n % 7}`);
const table = new WordTable(words.map((text) => ({ text })));

const find = (word: string) => table.find(`(${word})`, 1, 1 + word.length)?.text ?? null;

test('every word is found in any spelling', () => {
  for (const word of words) {
    assert.equal(find(word), word);
    assert.equal(find(word.toLowerCase()), word);
    assert.equal(find(word[0] + word.slice(1).toLowerCase()), word);
  }
});

test('a shorter, longer or different word is not', () => {
  for (const word of words) {
    for (const other of [
      `${word}x`,
      `x${word}`,
      word.replace('_', '-'),
      word.replace('_', '\u017f'),
    ]) {
      assert.equal(find(other), null, other);
    }
  }
  assert.equal(find(''), null);
  assert.equal(find('w'), null);
  assert.equal(find('x'.repeat(1_000)), null);
});

test('letters that only Unicode equates with others do not make a word', () => {
  const sleep = new WordTable([{ text: 'SLEEP' }, { text: 'KILL' }]);
  for (const [word, found] of [
    ['sleep', 'SLEEP'],
    ['\u017fleep', null],
    ['\u212aill', null],
    ['\uff33LEEP', null],
    ['\u0153LEEP', null],
  ] as const) {
    assert.equal(sleep.find(word, 0, word.length)?.text ?? null, found, word);
  }
});
