// Appends lines to a file in batches: a line costs a copy, and the disk is waited for by nobody.
// Must not know what a line says.
import {
  closeSync,
  constants,
  lstatSync,
  openSync,
  type Stats,
  statSync,
  write,
  writeSync,
} from 'node:fs';

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
const usualBufferBytes = 64 * 1024;
const mostBytesPerCharacter = 3;
/** What several processes may write to one pipe at a time without mixing their bytes (PIPE_BUF). */
const mostPipeBytes = 4096;

/** Why no lines can be appended to what lies at a path; null: nothing that can be seen beforehand. */
export function findObstacle(path: string): string | null {
  const link = lstatSync(path, { throwIfNoEntry: false });
  if (link?.isSymbolicLink() === true && !isTrusted(link)) return 'is a link of another user';
  const stats = statSync(path, { throwIfNoEntry: false });
  // A pipe would wait for its reader, or vanish with it. A device (/dev/null, a terminal) does neither.
  const isUsable = stats === undefined || stats.isFile() || stats.isCharacterDevice();
  return isUsable ? null : 'is no regular file';
}

function isTrusted({ uid }: Stats): boolean {
  return uid === 0 || uid === process.getuid?.();
}

/** @throws the system's error, or what was found in the way */
function openForAppending(path: string): number {
  const obstacle = findObstacle(path);
  if (obstacle !== null) throw new Error(`${path} ${obstacle}`);
  const { O_WRONLY, O_APPEND, O_CREAT, O_NONBLOCK, O_NOCTTY, O_NOFOLLOW } = constants;
  // A link that was not there a moment ago is none that was looked at.
  const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
  const flags = O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY;
  return openSync(path, isLink ? flags : flags | O_NOFOLLOW, 0o640);
}

/** Opens a writer on a path (appending; throws when that fails) or on a descriptor, which is not closed. */
export function openLineWriter(target: string | number): LineWriter {
  const open = () => (typeof target === 'number' ? target : openForAppending(target));
  const mostPieceBytes = typeof target === 'number' ? mostPipeBytes : Number.POSITIVE_INFINITY;
  let fd = open();
  // Bytes at once: a line is many small strings until then, which would outlive V8's young generation.
  let filling = Buffer.allocUnsafeSlow(usualBufferBytes);
  let length = 0;
  /** The one that is being written, or was last. */
  let other = Buffer.allocUnsafeSlow(usualBufferBytes);
  let lost = 0;
  let isScheduled = false;
  let isWriting = false;
  /** The disk took the beginning of a line and no more: what comes next begins a line of its own. */
  let isTorn = false;
  let retired: number | null = null;

  /** Makes room for so many bytes; false: there is none. */
  const reserve = (bytes: number): boolean => {
    const wanted = length + bytes;
    if (wanted <= filling.length) return true;
    if (wanted > mostBufferedBytes) return false;
    const wider = Buffer.allocUnsafeSlow(Math.min(wanted * 2, mostBufferedBytes));
    filling.copy(wider, 0, 0, length);
    filling = wider;
    return true;
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
    if (length > 0) schedule();
  };

  const startWrite = () => {
    isScheduled = false;
    if (isWriting || length === 0) return;
    isWriting = true;
    const batch = filling.subarray(0, length);
    [filling, other] = [other, filling];
    if (filling.length > usualBufferBytes) filling = Buffer.allocUnsafeSlow(usualBufferBytes);
    length = 0;
    writePieces(fd, cutIntoPieces(batch, mostPieceBytes));
  };

  const schedule = () => {
    if (!isScheduled) setTimeout(startWrite, batchMs).unref();
    isScheduled = true;
  };

  return {
    write: (line) => {
      if (!reserve(line.length * mostBytesPerCharacter)) {
        lost += 1;
        return;
      }
      length += filling.write(line, length);
      if (!isWriting) schedule();
    },
    flush: () => {
      const batch = filling.subarray(0, length);
      length = 0;
      for (const piece of cutIntoPieces(batch, mostPieceBytes)) {
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
        return (error as NodeJS.ErrnoException).code ?? (error as Error).message;
      }
    },
    lost: () => lost,
  };
}

const lineFeed = 0x0a;

/** Whole lines together, as many as fit into `mostBytes`; a longer line stays in one piece all the same. */
function cutIntoPieces(all: Buffer, mostBytes: number): readonly Buffer[] {
  if (all.length === 0) return [];
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
