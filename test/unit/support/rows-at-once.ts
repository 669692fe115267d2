// Rows written many at once, by the module alone: what it takes, and what it makes of that.
import { dbCells } from '../../../src/worker/encode/formats/db.ts';
import type { RowFraming } from '../../../src/worker/encode/row-module.ts';
import { objectKeys, planRow } from '../../../src/worker/encode/rows.ts';
import { type ColumnWish, wire } from '../../support/database/mysql-answer.ts';
import { collect, createRowModule, createWriter } from './transcript.ts';

const nothing = Buffer.alloc(0);

const rowModule = createRowModule();

/** The rows that one call took. */
export type Taken = {
  readonly rows: number;
  readonly bytes: number;
  readonly nextSequence: number;
  readonly body: Buffer;
};

/** The way in which the rows are offered. */
export type Offer = {
  readonly maxRows?: number;
  readonly stopLength?: number;
  readonly needsComma?: boolean;
  readonly framing?: RowFraming;
  /** The names of an object's members; without them, rows are arrays. */
  readonly names?: readonly string[];
  /** The expected sequence number. */
  readonly sequence?: number;
};

/** Offers packets to the module once. */
export function takeAtOnce(wishes: readonly ColumnWish[], bytes: Buffer, offer: Offer = {}): Taken {
  const transport = collect();
  const out = createWriter(transport);
  out.reserve(1);
  const columns = wishes.map(({ type = wire.text, charset = wire.utf8mb4 }) => ({
    name: Buffer.from('c'),
    origin: { database: nothing, table: nothing, originalTable: nothing, originalName: nothing },
    type,
    charset,
    flags: 0,
    length: 0,
    decimals: 0,
    extendedType: null,
    resultCharset: null,
  }));
  const { maxRows = 1e9, stopLength = 65536, needsComma = false, sequence = 1 } = offer;
  const { framing = 'list', names } = offer;
  const ahead = { bytes, position: 0, end: bytes.length, sequence };
  const plan = planRow(columns, dbCells(false), names === undefined ? null : objectKeys(names));
  const rows = rowModule.write(out, { ahead, plan, framing, needsComma, maxRows, stopLength });
  out.end();
  return { rows, bytes: ahead.position, nextSequence: ahead.sequence, body: transport.body() };
}
