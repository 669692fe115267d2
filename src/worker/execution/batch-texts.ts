// The texts that a batch is sent in: as few as can be, and nothing in one with what must be known before it.
// Pure. Must not know connections.
import type { Batch, BatchStep } from './work.ts';

/** One statement of a text. */
export type Piece = {
  readonly sql: string;
  readonly role:
    | 'preamble'
    /** From here on there is the savepoint of our own. */
    | 'savepoint'
    /** Takes the key: nothing of the batch is run unless it is new. */
    | 'key'
    | 'step'
    /** Keeps the reply with the key: it changes the row that `key` has written, or the transaction is not the same. */
    | 'reply'
    /** It fails unless the savepoint that is set before a CALL is there, and so the transaction that the CALL began in. */
    | 'call proof'
    /** The same of the savepoint of all, which is released by it. */
    | 'proof';
  /** Its number in the batch; of a proof the one that it is about; of others none. */
  readonly step: number | null;
};

/** Statements that are sent together; the server stops at the first one that fails. */
export type BatchText = { readonly sql: string; readonly pieces: readonly Piece[] };

/** A text is not made longer than this by a further statement. */
const mostTextBytes = 256 * 1024;
const separator = '\n;';

/**
 * Statements go together up to one that must have done what is expected of it. One text with semicolons stops at its first
 * error; packets in one write would not. Behind a CALL stands a proof that it has left the transaction as it was: a flag
 * would not tell of one that was ended and begun anew. Its savepoint is set right before the CALL, since releasing one
 * releases those of the client's that came after it. COMMIT is not among them: it goes alone, when all is known.
 * @param savepoint a name that no client can know
 * @param mostBytes what the server takes at once
 * @param insertion takes the batch's key, before anything is read: a snapshot would be older. Then the proof comes with the reply.
 */
export function writeTexts(
  batch: Batch,
  savepoint: string,
  mostBytes: number,
  insertion: string | null,
): readonly BatchText[] {
  const texts = new Texts(Math.min(mostBytes, mostTextBytes));
  if (batch.isAtomic) for (const piece of preamble(batch, savepoint)) texts.add(piece);
  if (insertion !== null) texts.add({ sql: insertion, role: 'key', step: null });
  batch.steps.forEach((step, number) => {
    const piece: Piece = { sql: step.sql, role: 'step', step: number };
    const isLast = insertion === null && number === batch.steps.length - 1;
    const pieces = batch.isAtomic ? withProof(piece, step, isLast, savepoint) : [piece];
    for (const one of pieces) texts.add(one);
    if (step.expect !== null) texts.close();
  });
  texts.close();
  return texts.all;
}

/** The last text of a batch with a key: when all has been done, and its reply is known. @param completion keeps the reply */
export function writeClosing(batch: Batch, savepoint: string, completion: string): BatchText {
  const texts = new Texts(Number.POSITIVE_INFINITY);
  const step = batch.steps.length - 1;
  texts.add({ sql: completion, role: 'reply', step });
  texts.add({ sql: `RELEASE SAVEPOINT ${savepoint}`, role: 'proof', step });
  return texts.close() as BatchText;
}

class Texts {
  readonly all: BatchText[] = [];
  readonly #mostBytes: number;
  #pieces: Piece[] = [];
  #bytes = 0;

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes;
  }

  add(piece: Piece): void {
    const bytes = Buffer.byteLength(piece.sql) + separator.length;
    if (this.#bytes + bytes > this.#mostBytes) this.close();
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

/** ROLLBACK first: nothing that a session may have begun is committed by what follows. */
function preamble({ isolation, isReadOnly }: Batch, savepoint: string): Piece[] {
  const own = (sql: string): Piece => ({ sql, role: 'preamble', step: null });
  return [
    own('ROLLBACK'),
    ...(isolation === null
      ? []
      : [own(`SET TRANSACTION ISOLATION LEVEL ${isolation.toUpperCase()}`)]),
    own(isReadOnly ? 'START TRANSACTION READ ONLY' : 'START TRANSACTION'),
    { sql: `SAVEPOINT ${savepoint}`, role: 'savepoint', step: null },
  ];
}

/** The proof behind the last statement is one of all before it, of a CALL too. */
function withProof(
  piece: Piece,
  { isCall }: BatchStep,
  isLast: boolean,
  savepoint: string,
): Piece[] {
  const { step } = piece;
  if (isLast) return [piece, { sql: `RELEASE SAVEPOINT ${savepoint}`, role: 'proof', step }];
  if (!isCall) return [piece];
  const around = `${savepoint}_call`;
  return [
    { sql: `SAVEPOINT ${around}`, role: 'preamble', step: null },
    piece,
    { sql: `RELEASE SAVEPOINT ${around}`, role: 'call proof', step },
  ];
}
