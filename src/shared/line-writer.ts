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

/** Opens a writer on a path (appending; throws when that fails) or on a descriptor, which is not closed. */
export function openLineWriter(target: string | number): LineWriter {
  const open = () => (typeof target === 'number' ? target : openSync(target, 'a', 0o640));
  let fd = open();
  let lines: string[] = [];
  let length = 0;
  let lost = 0;
  let isScheduled = false;
  let isWriting = false;
  let retired: number | null = null;

  const take = (): readonly string[] => {
    const taken = lines;
    lines = [];
    length = 0;
    return taken;
  };

  const finishWrite = (count: number, error: Error | null) => {
    isWriting = false;
    if (error !== null) lost += count;
    if (retired !== null) closeSync(retired);
    retired = null;
    if (lines.length > 0) schedule();
  };

  const writeRest = (bytes: Buffer, count: number) => {
    write(fd, bytes, (error, written) => {
      // A disk that fills up takes a piece first; the rest meets the error.
      if (error === null && written < bytes.length) writeRest(bytes.subarray(written), count);
      else finishWrite(count, error);
    });
  };

  const startWrite = () => {
    isScheduled = false;
    if (isWriting || lines.length === 0) return;
    isWriting = true;
    const taken = take();
    writeRest(Buffer.from(taken.join('')), taken.length);
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
      const taken = take();
      if (taken.length === 0) return;
      try {
        writeSync(fd, taken.join(''));
      } catch {
        lost += taken.length;
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
