// The requests of a run. Each has an id, which its answer must carry. Pure.
import type { Document } from '../../test/support/db-results.ts';

/** A request and its right answer. */
export type Question = {
  readonly name: string;
  readonly request: object;
  /** The right end: an answer, or 504 because the statement lasts longer than its deadline. */
  readonly wants: 'answer' | 'deadline';
  readonly isRight: (document: Document) => boolean;
  /** The row that a single INSERT writes. `nothing-lasting`: its transaction is left open, so the row must not remain. */
  readonly writes: 'row' | 'nothing-lasting' | null;
};

/** Tables and rows that the questions need. */
export const keys = 100;
export const largeRows = 20_000;
export const tables = `
create table t (k int primary key, n int);
insert into t select seq - 1, (seq - 1) * 7 from seq_1_to_${keys};
create table large as select seq as id, repeat(md5(seq), 6) as text from seq_1_to_${largeRows};
create table written (id int, key (id)) engine = InnoDB`;

const slowDeadlineMs = 300;

function lastRows({ RESULT }: Document): string {
  const last = Array.isArray(RESULT) ? RESULT.at(-1) : RESULT;
  return JSON.stringify(last?.ROWS);
}

function reads(name: string, sql: string, ...row: readonly (number | string | null)[]): Question {
  const expected = JSON.stringify([row]);
  const isRight = (document: Document) => lastRows(document) === expected;
  return { name, request: { SQL: sql }, wants: 'answer', isRight, writes: null };
}

/** A row by its key. */
export function point(id: number): Question {
  const key = id % keys;
  return reads('point', `select ${id}, n from t where k = ${key}`, id, key * 7);
}

/** One row more. */
export function insert(id: number): Question {
  const isRight = ({ RESULT }: Document) =>
    RESULT !== undefined && 'AFFECTED_ROWS' in RESULT && RESULT.AFFECTED_ROWS === 1;
  const SQL = `insert into written values (${id})`;
  return { name: 'insert', request: { SQL }, wants: 'answer', isRight, writes: 'row' };
}

/** A transaction that its request leaves open: its changes must not remain. */
export function leave(id: number): Question {
  const isRight = ({ RESULT }: Document) => Array.isArray(RESULT) && RESULT.length === 2;
  const begin = id % 2 === 0 ? 'begin' : 'set autocommit = 0';
  const SQL = `${begin}; insert into written values (${id})`;
  return {
    name: 'left open',
    request: { SQL },
    wants: 'answer',
    isRight,
    writes: 'nothing-lasting',
  };
}

/** Something that changes its session. */
export function change(id: number): Question {
  const temporary = 'create temporary table left_behind (n int)';
  const changes = [
    reads('change', `set @leak = ${id}; select @leak`, id),
    reads('change', `use information_schema; select ${id}, database()`, id, 'information_schema'),
    reads(
      'change',
      `${temporary}; insert left_behind values (${id}); select * from left_behind`,
      id,
    ),
    reads('change', `select @leak := ${id}`, id),
  ] as const;
  return changes[id % changes.length] ?? changes[0];
}

/** The state of an unchanged session. */
export function look(id: number, database: string): Question {
  return reads('look', `select ${id}, @leak, database(), @@autocommit`, id, null, database, 1);
}

/** A read that is in flight for a while. */
export function linger(id: number): Question {
  return reads('linger', `select ${id}, sleep(0.3)`, id, 0);
}

/** A statement that outlasts its deadline. */
export function outlast(id: number): Question {
  const request = { SQL: `select ${id}, sleep(20)`, TIMEOUT: slowDeadlineMs };
  return { name: 'slow', request, wants: 'deadline', isRight: () => false, writes: null };
}

/** Everything of the large table. */
export function download(id: number): Question {
  const isRight = ({ RESULT }: Document) => {
    const rows = RESULT !== undefined && 'ROWS' in RESULT ? RESULT.ROWS : undefined;
    return rows?.length === largeRows && rows.every(([first]) => first === id);
  };
  const request = { SQL: `select ${id}, id, text from large` };
  return { name: 'download', request, wants: 'answer', isRight, writes: null };
}
