// Positions: whether one history has all of another, and how far a replica has come.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  hasAllOf,
  hasReached,
  lastWriter,
  type Position,
  readMariadbPosition,
  readMysqlPosition,
} from '../../../../src/shared/servers/position.ts';
import { cases, fc } from '../../../support/property.ts';

const mariadb = (binlogState: string, { binlogPos = binlogState, slavePos = '' } = {}) =>
  readMariadbPosition({ binlogState, binlogPos, slavePos }) as Position;
/** Sources by short names, which become UUIDs. */
const mysql = (text: string) => readMysqlPosition(text.split(',').map(withUuid).join()) as Position;
const withUuid = (part: string) => {
  const [name = '', ...rest] = part.trim().split(':');
  const digits = Buffer.from(name).toString('hex').padStart(12, '0').slice(-12);
  return [`00000000-0000-0000-0000-${digits}`, ...rest].join(':');
};

const number = fc.integer({ min: 1, max: 4 });
const anyMariadb = fc
  .array(fc.tuple(fc.integer({ min: 0, max: 2 }), number, fc.integer({ min: 1, max: 9 })), {
    minLength: 1,
  })
  .map((gtids) => mariadb(gtids.map((parts) => parts.join('-')).join()));
const interval = fc.tuple(fc.integer({ min: 1, max: 30 }), fc.integer({ min: 0, max: 9 }));
const anyMysql = fc
  .array(fc.tuple(fc.constantFrom('a', 'b', 'a:tag'), interval), { minLength: 1 })
  .map((parts) => mysql(normalize(parts)));
const anyGalera = fc
  .tuple(fc.constantFrom('x', 'y'), fc.bigInt({ min: 0n, max: 9n }))
  .map(([cluster, committed]): Position => ({ kind: 'galera', cluster, committed }));
const anyPosition = fc.oneof(anyMariadb, anyMysql, anyGalera);

/** The form in which MySQL writes a set: adjacent ranges of one source are one. */
function normalize(parts: readonly (readonly [string, readonly [number, number]])[]): string {
  const numbers = new Map<string, Set<number>>();
  for (const [source, [first, more]] of parts) {
    const own = numbers.get(source) ?? new Set<number>();
    for (let at = first; at <= first + more; at += 1) own.add(at);
    numbers.set(source, own);
  }
  const ranges = (own: ReadonlySet<number>) => {
    const sorted = [...own].sort((one, other) => one - other);
    const starts = sorted.filter((one) => !own.has(one - 1));
    const ends = sorted.filter((one) => !own.has(one + 1));
    return starts.map((start, at) => (start === ends[at] ? `${start}` : `${start}-${ends[at]}`));
  };
  return [...numbers].map(([source, own]) => `${source}:${ranges(own).join(':')}`).join(',\n');
}

test('a history has all of itself', () => {
  fc.assert(fc.property(anyPosition, (one) => hasAllOf(one, one) === true));
});

test('a position that contains another contains everything that the other contains of a third', () => {
  fc.assert(
    fc.property(anyPosition, anyPosition, anyPosition, (one, two, three) => {
      const isChain = hasAllOf(one, two) === true && hasAllOf(two, three) === true;
      assert.ok(!isChain || hasAllOf(one, three) === true);
    }),
    { numRuns: cases(4_000) },
  );
});

test('sets of GTIDs contain each other exactly as the numbers in them do', () => {
  const parts = fc.array(fc.tuple(fc.constantFrom('a', 'b', 'a:tag'), interval), { minLength: 1 });
  const members = (given: readonly (readonly [string, readonly [number, number]])[]) =>
    new Set(
      given.flatMap(([source, [first, more]]) =>
        Array.from({ length: more + 1 }, (_, at) => `${source}:${first + at}`),
      ),
    );
  fc.assert(
    fc.property(parts, parts, (one, other) => {
      const own = members(one);
      const contains = [...members(other)].every((member) => own.has(member));
      assert.equal(hasAllOf(mysql(normalize(one)), mysql(normalize(other))), contains);
    }),
  );
});

test('a tag of MySQL is a source of its own, for as many ranges as follow it', () => {
  const tagged = mysql('3e11fa47-1:1-5:7:tag:1-3:5,\n4f22:1');
  assert.equal(hasAllOf(tagged, mysql('3e11fa47-1:tag:2-3')), true);
  assert.equal(hasAllOf(tagged, mysql('3e11fa47-1:tag:4')), false);
  assert.equal(hasAllOf(tagged, mysql('3e11fa47-1:6')), false);
  assert.equal(hasAllOf(mysql('3e11fa47-1:1-9'), mysql('3e11fa47-1:tag:1')), false);
  assert.equal(readMysqlPosition(''), null);
});

test('the same number of another server is another transaction', () => {
  assert.equal(hasAllOf(mariadb('0-1-7,0-2-9'), mariadb('0-1-8')), false);
  assert.equal(hasAllOf(mariadb('0-1-7,0-2-9'), mariadb('0-1-7')), true);
  assert.equal(hasAllOf(mariadb('0-1-7'), mariadb('1-1-1')), false);
});

test('positions of different kinds, or of two clusters, cannot be compared', () => {
  assert.equal(hasAllOf(mariadb('0-1-7'), mysql('a:1')), null);
  const galera = (cluster: string): Position => ({ kind: 'galera', cluster, committed: 5n });
  assert.equal(hasAllOf(galera('x'), galera('y')), null);
});

test('a position has all digits', () => {
  const one = mariadb('0-1-18446744073709551615');
  assert.equal(hasAllOf(mariadb('0-1-18446744073709551614'), one), false);
});

test('no position if nothing was written or replicated', () => {
  assert.equal(readMariadbPosition({ binlogState: '', binlogPos: '', slavePos: '' }), null);
});

test('a replica without its own log has reached its last event', () => {
  const source = mariadb('0-1-5,0-2-9', { binlogPos: '0-2-9' });
  assert.equal(hasReached(mariadb('', { binlogPos: '', slavePos: '0-2-9' }), source), true);
  assert.equal(hasReached(mariadb('', { binlogPos: '', slavePos: '0-2-8' }), source), false);
  assert.equal(hasReached(mariadb('', { binlogPos: '', slavePos: '1-2-9' }), source), false);
});

test('a replica that has all of a source has reached it', () => {
  fc.assert(
    fc.property(anyPosition, anyPosition, (replica, source) => {
      assert.ok(hasAllOf(replica, source) !== true || hasReached(replica, source) === true);
    }),
    { numRuns: cases(3_000) },
  );
});

test('the last writer is known if all domains agree', () => {
  assert.equal(lastWriter(mariadb('0-1-5,0-2-9', { binlogPos: '0-2-9' })), '2');
  assert.equal(lastWriter(mariadb('0-1-5,1-2-9')), null);
  assert.equal(lastWriter(mysql('a:1-5')), null);
});
