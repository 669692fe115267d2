// Writes the texts of a batch: as few as possible, and none contains a statement that depends on the check of an earlier one. Pure.
import { beginStatements } from '../../shared/sql/transactions.ts';
import { showWarnings } from './warnings.ts';
import type { Batch, BatchStep } from './work.ts';

/** One statement of a text. */
export type Piece = {
  readonly sql: string;
  readonly role: /** Fails unless the idempotency table has transactions. Outside of the transaction: it reads. */
    | 'engine proof'
    | 'preamble'
    /** Sets the gateway's own savepoint. */
    | 'savepoint'
    /** Takes the key: nothing of the batch runs unless the key is new. */
    | 'key'
    | 'step'
    /** Asks for the texts of a statement's warnings. */
    | 'warnings'
    /** Stores the reply with the key. It must change the row that `key` has written, or the transaction is another one. */
    | 'reply'
    /** Fails unless the savepoint from before a CALL still exists, and with it the transaction in which the CALL began. */
    | 'call proof'
    /** The same for the gateway's own savepoint, which it releases. */
    | 'proof';
  /** The number of the statement, or of the statement that a proof is about; null: neither. */
  readonly step: number | null;
};

/** Statements that are sent together; the server stops at the first one that fails. */
export type BatchText = { readonly sql: string; readonly pieces: readonly Piece[] };

/** The statements that take a key. */
export type KeyTexts = { readonly engineProof: string; readonly insertion: string };

/** A text takes no further statement beyond this length. */
const maxTextBytes = 256 * 1024;
const separator = '\n;';

/**
 * A text ends after a statement with an expectation, which must be checked first. One text with semicolons stops at its first error;
 * several packets in one write would not. A proof follows each CALL: a flag would not show a transaction that was ended and begun
 * again. Its savepoint is set right before the CALL, because a release also releases the client's later savepoints. COMMIT is sent
 * alone, when all results are known.
 * @param savepoint a name that no client can know
 * @param maxBytes the longest text that the server takes
 * @param key takes the batch's key before anything is read: a snapshot would be older. Then the proof comes with the reply.
 */
export function writeTexts(
  batch: Batch,
  savepoint: string,
  maxBytes: number,
  key: KeyTexts | null,
): readonly BatchText[] {
  const texts = new Texts(Math.min(maxBytes, maxTextBytes));
  if (key !== null) texts.add({ sql: key.engineProof, role: 'engine proof', step: null });
  if (batch.isAtomic) for (const piece of preamble(batch, savepoint)) texts.add(piece);
  if (key !== null) texts.add({ sql: key.insertion, role: 'key', step: null });
  batch.steps.forEach((step, number) => {
    const piece: Piece = { sql: step.sql, role: 'step', step: number };
    const isLast = key === null && number === batch.steps.length - 1;
    const own = withWarnings(piece, step);
    const pieces = batch.isAtomic ? withProof(own, step, number, isLast, savepoint) : own;
    for (const one of pieces) texts.add(one);
    if (step.expect !== null) texts.close();
  });
  texts.close();
  return texts.all;
}

/** The last text of a batch with a key, when its reply is known. @param completion stores the reply */
export function writeClosing(batch: Batch, savepoint: string, completion: string): BatchText {
  const texts = new Texts(Number.POSITIVE_INFINITY);
  const step = batch.steps.length - 1;
  texts.add({ sql: completion, role: 'reply', step });
  texts.add({ sql: `RELEASE SAVEPOINT ${savepoint}`, role: 'proof', step });
  return texts.close() as BatchText;
}

class Texts {
  readonly all: BatchText[] = [];
  readonly #maxBytes: number;
  #pieces: Piece[] = [];
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  add(piece: Piece): void {
    const bytes = Buffer.byteLength(piece.sql) + separator.length;
    if (this.#bytes + bytes > this.#maxBytes) this.close();
    this.#pieces.push(piece);
    this.#bytes += bytes;
  }

  /** A line feed ends a comment that would have swallowed the semicolon. */
  close(): BatchText | null {
    const pieces = this.#pieces;
    this.#pieces = [];
    this.#bytes = 0;
    if (pieces.length === 0) return null;
    const text = { sql: pieces.map((piece) => piece.sql).join(separator), pieces };
    this.all.push(text);
    return text;
  }
}

function preamble({ isolation, isReadOnly }: Batch, savepoint: string): Piece[] {
  const begin = beginStatements({ isolation, isReadOnly, hasSnapshot: false });
  return [
    ...begin.map((sql): Piece => ({ sql, role: 'preamble', step: null })),
    { sql: `SAVEPOINT ${savepoint}`, role: 'savepoint', step: null },
  ];
}

/** The next statement may clear the warnings, a proof too. */
function withWarnings(piece: Piece, { statement }: BatchStep): readonly Piece[] {
  if (!statement.showsWarnings) return [piece];
  return [piece, { ...piece, sql: showWarnings, role: 'warnings' }];
}

/** The proof after the last statement covers all statements, including a CALL. */
function withProof(
  own: readonly Piece[],
  { isCall }: BatchStep,
  step: number,
  isLast: boolean,
  savepoint: string,
): readonly Piece[] {
  if (isLast) return [...own, { sql: `RELEASE SAVEPOINT ${savepoint}`, role: 'proof', step }];
  if (!isCall) return own;
  const around = `${savepoint}_call`;
  return [
    { sql: `SAVEPOINT ${around}`, role: 'preamble', step: null },
    ...own,
    { sql: `RELEASE SAVEPOINT ${around}`, role: 'call proof', step },
  ];
}
