// Appends lines to a file in batches: a line costs a concatenation, and the disk is waited for by nobody.
// Must not know what a line says.
import { closeSync, openSync, write, writeSync } from 'node:fs';

/** A writer that never throws once open; lines that the disk refuses are counted. */
export type LineWriter = {
  readonly write: (line: string) => void;
  readonly flush: () => void;
  /** Opens the path anew; a text says why it could not, and the old file stays. */
  readonly reopen: () => string | null;
  readonly lost: () => number;
};

const batchMs = 20;
const mostBufferedBytes = 1024 * 1024;
/** What several processes may write to one pipe at a time without mixing their bytes (PIPE_BUF). */
const mostPipeBytes = 4096;

/** Opens a writer on a path (appending; throws when that fails) or on a descriptor, which is not closed. */
export function openLineWriter(target: string | number): LineWriter {
  const open = () => (typeof target === 'number' ? target : openSync(target, 'a', 0o640));
  const mostPieceBytes = typeof target === 'number' ? mostPipeBytes : Number.POSITIVE_INFINITY;
  let fd = open();
  let lines: string[] = [];
  let length = 0;
  let lost = 0;
  let isScheduled = false;
  let isWriting = false;
  /** The disk took the beginning of a line and no more: what comes next begins a line of its own. */
  let isTorn = false;
  let retired: number | null = null;

  const take = (): readonly string[] => {
    const taken = lines;
    lines = [];
    length = 0;
    return taken;
  };

  const lose = (rest: Buffer, wasCut: boolean) => {
    for (let at = rest.indexOf(lineFeed); at >= 0; at = rest.indexOf(lineFeed, at + 1)) lost += 1;
    isTorn ||= wasCut;
  };

  const mend = (bytes: Buffer): Buffer => {
    if (!isTorn) return bytes;
    isTorn = false;
    return Buffer.concat([Buffer.from('\n'), bytes]);
  };

  // A batch goes to one file to its end, also when another is opened meanwhile.
  const writePiece = (to: number, bytes: Buffer, wasCut: boolean, later: readonly Buffer[]) => {
    write(to, bytes, (error, written) => {
      if (error === null && written < bytes.length) {
        // A disk that fills up takes a piece first; the rest meets the error.
        writePiece(to, bytes.subarray(written), wasCut || written > 0, later);
      } else if (error?.code === 'EAGAIN') {
        setTimeout(() => writePiece(to, bytes, wasCut, later), batchMs).unref();
      } else {
        if (error !== null) lose(bytes, wasCut);
        writePieces(to, later);
      }
    });
  };

  const writePieces = (to: number, [first, ...later]: readonly Buffer[]) => {
    if (first !== undefined) {
      writePiece(to, mend(first), false, later);
      return;
    }
    isWriting = false;
    if (retired !== null) closeSync(retired);
    retired = null;
    if (lines.length > 0) schedule();
  };

  const startWrite = () => {
    isScheduled = false;
    if (isWriting || lines.length === 0) return;
    isWriting = true;
    writePieces(fd, cutIntoPieces(take(), mostPieceBytes));
  };

  const schedule = () => {
    if (!isScheduled) setTimeout(startWrite, batchMs).unref();
    isScheduled = true;
  };

  return {
    write: (line) => {
      if (length + line.length > mostBufferedBytes) {
        lost += 1;
        return;
      }
      lines.push(line);
      length += line.length;
      if (!isWriting) schedule();
    },
    flush: () => {
      for (const piece of cutIntoPieces(take(), mostPieceBytes)) {
        let rest = mend(piece);
        const whole = rest.length;
        try {
          while (rest.length > 0) rest = rest.subarray(writeSync(fd, rest));
        } catch {
          lose(rest, rest.length < whole);
        }
      }
    },
    reopen: () => {
      try {
        const next = open();
        if (next === fd) return null;
        // A batch under way still goes to the old file; that one is closed when the batch has ended.
        if (isWriting && retired === null) retired = fd;
        else closeSync(fd);
        fd = next;
        return null;
      } catch (error) {
        return (error as NodeJS.ErrnoException).code ?? String(error);
      }
    },
    lost: () => lost,
  };
}

const lineFeed = 0x0a;

/** Whole lines together, as many as fit into `mostBytes`; a longer line stays in one piece all the same. */
function cutIntoPieces(lines: readonly string[], mostBytes: number): readonly Buffer[] {
  if (lines.length === 0) return [];
  const all = Buffer.from(lines.join(''));
  if (all.length <= mostBytes) return [all];
  const pieces: Buffer[] = [];
  for (let start = 0; start < all.length; ) {
    const fitting = all.lastIndexOf(lineFeed, start + mostBytes - 1);
    const end = fitting >= start ? fitting + 1 : all.indexOf(lineFeed, start) + 1;
    pieces.push(all.subarray(start, end));
    start = end;
  }
  return pieces;
}
