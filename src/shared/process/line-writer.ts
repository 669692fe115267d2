// A line writer appends lines to a file in batches. A line costs a copy, and no caller waits for the disk.
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fstatSync,
  lstatSync,
  openSync,
  type Stats,
  statSync,
  write,
  writeSync,
} from 'node:fs';

const batchMs = 20;
const maxBufferedBytes = 1024 * 1024;
const usualBufferBytes = 64 * 1024;
const maxBytesPerCharacter = 3;
/** Several processes can write this much to one pipe at a time without mixing their bytes (PIPE_BUF). */
const maxPipeBytes = 4096;

const lineFeed = 0x0a;

/**
 * A writer that never throws once it is open. It counts the lines that the disk refuses.
 *
 * idle: nothing is buffered. scheduled: a timer runs, lines gather. writing: one batch goes to the disk, the next one gathers.
 */
export class LineWriter {
  readonly #target: string | number;
  readonly #maxPieceBytes: number;
  #fd: number;
  /** The file before `reopen`, which is closed when the batch under way has ended. */
  #retired: number | null = null;
  // Bytes at once: a line is many small strings until then, which would outlive V8's young generation.
  #filling = Buffer.allocUnsafeSlow(usualBufferBytes);
  #length = 0;
  /** The buffer that is being written, or was last. */
  #other = Buffer.allocUnsafeSlow(usualBufferBytes);
  #phase: 'idle' | 'scheduled' | 'writing' = 'idle';
  #lost = 0;
  /** How many of them `onRecovered` has reported. */
  #reported = 0;
  readonly #onRecovered: (lost: number) => void;
  /** The descriptor of a file that no path leads to, so that what it takes is lost; null: there is none. */
  #unlinked: number | null = null;
  /** The disk took only the beginning of a line, so the next piece begins with a line feed. */
  #isTorn = false;

  /**
   * @param target a path, opened for appending, or a descriptor, which is never closed
   * @param onRecovered called with the number of lines that were lost, once lines are written again
   * @throws when the path cannot be opened
   */
  constructor(target: string | number, onRecovered: (lost: number) => void = () => {}) {
    this.#target = target;
    this.#onRecovered = onRecovered;
    this.#maxPieceBytes = typeof target === 'number' ? maxPipeBytes : Number.POSITIVE_INFINITY;
    this.#fd = open(target);
  }

  write(line: string): void {
    if (!this.#reserve(line.length * maxBytesPerCharacter)) {
      this.#lost += 1;
      return;
    }
    this.#length += this.#filling.write(line, this.#length);
    this.#schedule();
  }

  /** Writes what is buffered before it returns. */
  flush(): void {
    const batch = this.#filling.subarray(0, this.#length);
    this.#length = 0;
    let isWritten = false;
    for (const piece of cutIntoPieces(batch, this.#maxPieceBytes)) {
      const whole = this.#repair(piece);
      let rest = whole;
      try {
        while (rest.length > 0) rest = rest.subarray(writeSync(this.#fd, rest));
        isWritten = this.#isKept(this.#fd, whole);
      } catch {
        this.#lose(rest, rest.length < whole.length);
      }
    }
    // Not before: what is written meanwhile takes the place of the batch.
    if (isWritten) this.#reportLosses();
  }

  /** Opens the path again. Returns why it could not; the old file stays in use then, and if it was removed, its lines count as lost. */
  reopen(): string | null {
    try {
      const next = open(this.#target);
      if (next === this.#fd) return null;
      // A batch goes to one file to its end.
      if (this.#phase === 'writing' && this.#retired === null) this.#retired = this.#fd;
      else this.#close(this.#fd);
      this.#fd = next;
      return null;
    } catch (error) {
      if (isUnlinked(this.#fd)) this.#unlinked = this.#fd;
      return (error as NodeJS.ErrnoException).code ?? (error as Error).message;
    }
  }

  /** How many lines could not be written so far. */
  lost(): number {
    return this.#lost;
  }

  /** Makes room for a number of bytes. False: the buffer is full. */
  #reserve(bytes: number): boolean {
    const wanted = this.#length + bytes;
    if (wanted <= this.#filling.length) return true;
    if (wanted > maxBufferedBytes) return false;
    const wider = Buffer.allocUnsafeSlow(Math.min(wanted * 2, maxBufferedBytes));
    this.#filling.copy(wider, 0, 0, this.#length);
    this.#filling = wider;
    return true;
  }

  #schedule(): void {
    if (this.#phase !== 'idle') return;
    this.#phase = 'scheduled';
    setTimeout(() => this.#startWrite(), batchMs).unref();
  }

  #startWrite(): void {
    this.#phase = 'idle';
    if (this.#length === 0) return;
    this.#phase = 'writing';
    const batch = this.#filling.subarray(0, this.#length);
    [this.#filling, this.#other] = [this.#other, this.#filling];
    if (this.#filling.length > usualBufferBytes) {
      this.#filling = Buffer.allocUnsafeSlow(usualBufferBytes);
    }
    this.#length = 0;
    this.#writePieces(this.#fd, cutIntoPieces(batch, this.#maxPieceBytes));
  }

  #writePieces(to: number, [first, ...later]: readonly Buffer[]): void {
    if (first !== undefined) {
      this.#writePiece(to, this.#repair(first), false, later);
      return;
    }
    this.#phase = 'idle';
    if (this.#retired !== null) this.#close(this.#retired);
    this.#retired = null;
    if (this.#length > 0) this.#schedule();
  }

  #writePiece(to: number, bytes: Buffer, wasCut: boolean, later: readonly Buffer[]): void {
    write(to, bytes, (error, written) => {
      if (error === null && written < bytes.length) {
        // A disk that fills up takes a piece first, and refuses the rest.
        this.#writePiece(to, bytes.subarray(written), wasCut || written > 0, later);
      } else if (error?.code === 'EAGAIN') {
        setTimeout(() => this.#writePiece(to, bytes, wasCut, later), batchMs).unref();
      } else {
        if (error !== null) this.#lose(bytes, wasCut);
        else if (this.#isKept(to, bytes)) this.#reportLosses();
        this.#writePieces(to, later);
      }
    });
  }

  #lose(rest: Buffer, wasCut: boolean): void {
    this.#lost += countLines(rest);
    this.#isTorn ||= wasCut;
  }

  /** Whether written lines can be found again. */
  #isKept(to: number, written: Buffer): boolean {
    if (to !== this.#unlinked) return true;
    this.#lost += countLines(written);
    return false;
  }

  #reportLosses(): void {
    const lost = this.#lost - this.#reported;
    this.#reported = this.#lost;
    if (lost > 0) this.#onRecovered(lost);
  }

  #close(fd: number): void {
    closeSync(fd);
    if (this.#unlinked === fd) this.#unlinked = null;
  }

  #repair(bytes: Buffer): Buffer {
    if (!this.#isTorn) return bytes;
    this.#isTorn = false;
    return Buffer.concat([Buffer.from('\n'), bytes]);
  }
}

function countLines(bytes: Buffer): number {
  let count = 0;
  for (let at = bytes.indexOf(lineFeed); at >= 0; at = bytes.indexOf(lineFeed, at + 1)) count += 1;
  return count;
}

/** Whether no path leads to an open file any more. */
function isUnlinked(fd: number): boolean {
  const stats = fstatSync(fd);
  return stats.isFile() && stats.nlink === 0;
}

function open(target: string | number): number {
  return typeof target === 'number' ? target : openForAppending(target);
}

/** Why no lines can be appended to what is at a path, as far as it can be seen beforehand; null: they can be, or nothing is there. */
export function findObstacle(path: string): string | null {
  try {
    const obstacle = obstacleAt(path);
    if (obstacle === null && existsSync(path)) accessSync(path, constants.W_OK);
    return obstacle;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? String(error);
  }
}

/** @throws the system's error, if the path cannot be examined */
function obstacleAt(path: string): string | null {
  const link = lstatSync(path, { throwIfNoEntry: false });
  if (link?.isSymbolicLink() === true && !isTrusted(link)) return 'is a link of another user';
  const stats = statSync(path, { throwIfNoEntry: false });
  // A pipe would wait for its reader, or vanish with it. A device (/dev/null, a terminal) does neither.
  const isUsable = stats === undefined || stats.isFile() || stats.isCharacterDevice();
  if (!isUsable) return 'is not a regular file';
  // Its owner could read and change every line.
  return stats?.isFile() === true && !isTrusted(stats) ? 'belongs to another user' : null;
}

function isTrusted({ uid }: Stats): boolean {
  return uid === 0 || uid === process.getuid?.();
}

/** @throws the system's error, or the obstacle */
function openForAppending(path: string): number {
  const obstacle = obstacleAt(path);
  if (obstacle !== null) throw new Error(`${path} ${obstacle}`);
  const { O_WRONLY, O_APPEND, O_CREAT, O_NONBLOCK, O_NOCTTY, O_NOFOLLOW } = constants;
  // A link that has appeared since was not examined.
  const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
  const flags = O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY;
  return openSync(path, isLink ? flags : flags | O_NOFOLLOW, 0o640);
}

/** Pieces of whole lines, of at most `maxBytes` each. A longer line remains in one piece. */
function cutIntoPieces(all: Buffer, maxBytes: number): readonly Buffer[] {
  if (all.length === 0) return [];
  if (all.length <= maxBytes) return [all];
  const pieces: Buffer[] = [];
  for (let start = 0; start < all.length; ) {
    const fitting = all.lastIndexOf(lineFeed, start + maxBytes - 1);
    const end = fitting >= start ? fitting + 1 : all.indexOf(lineFeed, start) + 1;
    pieces.push(all.subarray(start, end));
    start = end;
  }
  return pieces;
}
