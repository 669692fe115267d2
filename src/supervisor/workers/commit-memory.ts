// What must be known of COMMITs beyond the life of an instance: how they ended, and the key that signs its tokens, in a file beside the claim.
import { randomBytes } from 'node:crypto';
import {
  appendFileSync,
  closeSync,
  constants,
  fstatSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import {
  CommitEndings,
  type EndedName,
  type Ending,
  type Remembered,
} from '../../shared/process/commit-endings.ts';
import { openLockFile } from '../claim/file-lock.ts';

/** The memory of all instances of one pidfile: of one that drains and its successor, and of those that were killed. */
export type CommitMemory = {
  /** Signs the tokens of transactions that clients hold, in base64. All instances have the same. */
  readonly key: string;
  /** What is noted is there when this returns, however the process ends. */
  readonly note: (name: EndedName, ending: Ending) => void;
  readonly of: (name: EndedName) => Ending;
};

const keyBytes = 32;
const keyLine = /^key ([\w+/]{43}=)$/m;
const endingLine = /^([0-9a-f]{16}) (\d+) (committed|unknown|partial|unproven|over|forgotten)$/;
/** After so many notes, or where it is so long at a start, the file is written anew with what is still remembered. */
const mostNotes = 15_000;
const mostBytes = 2 * 1024 * 1024;

/**
 * Opens the memory of a pidfile, and makes it where there is none.
 * @param onFault told why nothing more outlives this instance, once: the file cannot be used
 */
export function openCommitMemory(pidfile: string, onFault: (error: unknown) => void): CommitMemory {
  const path = `${pidfile}.commits`;
  const endings = new CommitEndings();
  let key: string | null = null;
  let isUsable = true;
  /** How far the file has been read, and which one it was. */
  let read = { inode: 0, bytes: 0 };
  let notes = 0;

  const attempt = (work: () => void) => {
    if (!isUsable) return;
    try {
      work();
    } catch (error) {
      isUsable = false;
      onFault(error);
    }
  };
  /** Others may have noted something since, or written it anew. False: its last line is not whole. */
  const readOn = (): boolean => {
    const { inode, text } = readFile(path, read);
    const whole = text.slice(0, text.lastIndexOf('\n') + 1);
    read = { inode, bytes: (inode === read.inode ? read.bytes : 0) + whole.length };
    key ??= keyLine.exec(whole)?.[1] ?? null;
    for (const line of whole.split('\n')) {
      const ending = parseEnding(line);
      if (ending !== null) endings.take(ending);
    }
    return whole.length === text.length;
  };
  const writeAnew = (ownKey: string) => {
    const temporary = `${path}.${process.pid}`;
    const lines = [`key ${ownKey}\n`, ...endings.remembered().map(formatEnding)];
    rmSync(temporary, { force: true });
    writeFileSync(temporary, lines.join(''), { mode: 0o600, flag: 'wx' });
    renameSync(temporary, path);
  };

  let isWhole = false;
  attempt(() => {
    // Whoever may write to it says what became of COMMITs.
    closeSync(openLockFile(path));
    isWhole = readOn() && key !== null;
  });
  const ownKey = key ?? randomBytes(keyBytes).toString('base64');
  if (!isWhole || read.bytes > mostBytes) attempt(() => writeAnew(ownKey));

  return {
    key: ownKey,
    note: (name, ending) => {
      endings.note(name, ending);
      attempt(() => {
        appendFileSync(path, formatEnding({ ...name, ending }), { mode: 0o600 });
        notes += 1;
        if (notes < mostNotes) return;
        notes = 0;
        readOn();
        writeAnew(ownKey);
      });
    },
    of: (name) => {
      attempt(readOn);
      return endings.of(name);
    },
  };
}

/** What stands behind what was read; all, where it is another file. */
function readFile(
  path: string,
  read: { readonly inode: number; readonly bytes: number },
): { readonly inode: number; readonly text: string } {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const { ino: inode, size } = fstatSync(fd);
    const from = inode === read.inode ? read.bytes : 0;
    const bytes = Buffer.alloc(Math.max(0, size - from));
    const length = readSync(fd, bytes, 0, bytes.length, from);
    return { inode, text: bytes.toString('latin1', 0, length) };
  } finally {
    closeSync(fd);
  }
}

function formatEnding({ incarnation, serial, ending }: Remembered): string {
  return `${incarnation} ${serial} ${ending}\n`;
}

function parseEnding(line: string): Remembered | null {
  const [, incarnation = '', serial, ending] = endingLine.exec(line) ?? [];
  if (ending === undefined) return null;
  return { incarnation, serial: Number(serial), ending: ending as Remembered['ending'] };
}
