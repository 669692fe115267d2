// Batches with keys, of many kinds: the request, its rows in the tables, and its reply.
import { pick } from '../random.ts';

/** No index is unique on a batch's number: what is executed twice leaves two rows, and counts two in `totals`. */
export const keyedTables = `
  create table entries (n int, index (n)) engine = innodb;
  create table marks (n int, index (n)) engine = innodb;
  create table totals (id int primary key, n int) engine = innodb;
  insert into totals values (1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (6, 0), (7, 0), (8, 0);
  create table taken (id int primary key) engine = innodb;
  insert into taken values (1);
  create procedure enter(wanted int) begin insert into entries values (wanted); select wanted as n; end`;

const totals = [1, 2, 3, 4, 5, 6, 7, 8];
const isolations = ['read uncommitted', 'read committed', 'repeatable read', 'serializable', null];

/** One batch. If it is executed, `entries` and `marks` have its number once, and each of its totals is one higher. */
export type KeyedBatch = {
  readonly number: number;
  readonly body: { readonly isolation: string | null; readonly statements: readonly object[] };
  /** The code of its refusal at every run, after which nothing is left; null: it succeeds. */
  readonly refusal: string | null;
  readonly totals: readonly number[];
  /** One of its statements is a CALL: after a deadlock in it, it is unknown whether it committed before. */
  readonly hasCall: boolean;
  /** The results of its statements: the number of changed rows, or the rows that were read. */
  readonly results: readonly Result[];
};

type Result = number | readonly (readonly number[])[];

type Step = readonly [
  statement: { readonly sql: string; readonly [more: string]: unknown },
  says: Result,
];

type Kind = (
  number: number,
  random: () => number,
) => {
  readonly steps: readonly Step[];
  readonly totals: readonly number[];
  readonly refusal?: string;
};

const insertInto = (table: string, number: number): Step => [
  { sql: `insert into ${table} values (?)`, params: [number] },
  1,
];
const countIn = (id: number, expected = 1): Step => [
  {
    sql: 'update totals set n = n + 1 where id = ?',
    params: [id],
    expect: { affected_rows: expected },
  },
  1,
];
const read = (number: number): Step => [
  { sql: 'select n from entries where n = ?', params: [number], expect: { row_count: 1 } },
  [[number]],
];
const call = (number: number): Step => [{ sql: 'call enter(?)', params: [number] }, [[number]]];

const kinds: readonly Kind[] = [
  (number, random) => {
    const id = pick(random, totals);
    const steps = [insertInto('entries', number), insertInto('marks', number), countIn(id)];
    return { steps, totals: [id] };
  },
  (number, random) => {
    const id = pick(random, totals);
    const steps = [
      insertInto('entries', number),
      read(number),
      insertInto('marks', number),
      countIn(id),
    ];
    return { steps, totals: [id] };
  },
  (number, random) => {
    const id = pick(random, totals);
    return { steps: [countIn(id), call(number), insertInto('marks', number)], totals: [id] };
  },
  // Two rows in either order: such batches deadlock with each other.
  (number, random) => {
    const one = pick(random, totals);
    const other = pick(
      random,
      totals.filter((id) => id !== one),
    );
    const steps = [
      countIn(one),
      insertInto('entries', number),
      insertInto('marks', number),
      countIn(other),
    ];
    return { steps, totals: [one, other] };
  },
  (number, random) => {
    const id = pick(random, totals);
    const steps = [insertInto('entries', number), insertInto('marks', number), countIn(id, 2)];
    return { steps, totals: [id], refusal: 'EXPECTATION_FAILED' };
  },
  (number, random) => {
    const id = pick(random, totals);
    const steps = [
      insertInto('entries', number),
      insertInto('marks', number),
      countIn(id),
      insertInto('taken', 1),
    ];
    return { steps, totals: [id], refusal: 'ER_DUP_ENTRY' };
  },
];

/** This many of ten kinds succeed. */
const succeedingKinds = 4;
const succeedingShare = 0.9;

/** Draws the batch of this number. */
export function drawBatch(
  number: number,
  random: () => number,
  isToSucceed = random() < succeedingShare,
): KeyedBatch {
  const kind = pick(
    random,
    isToSucceed ? kinds.slice(0, succeedingKinds) : kinds.slice(succeedingKinds),
  );
  const { steps, totals: counted, refusal = null } = kind(number, random);
  return {
    number,
    body: {
      isolation: pick(random, isolations),
      statements: steps.map(([statement]) => statement),
    },
    refusal,
    totals: counted,
    hasCall: steps.some(([{ sql }]) => sql.startsWith('call ')),
    results: steps.map(([, says]) => says),
  };
}
