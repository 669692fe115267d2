// The memory of COMMITs beyond the life of an instance: how they ended, and the key that signs its tokens, in a file beside the pidfile.
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

/** The memory that all instances of one pidfile share: a draining one, its successor, and killed ones. */
export type CommitMemory = {
  /** The key in base64 that signs the tokens of transactions that clients hold. All instances have the same. */
  readonly key: string;
  /** The ending is in the file when this returns, so it survives a crash of the process. */
  readonly note: (name: EndedName, ending: Ending) => void;
  readonly of: (name: EndedName) => Ending;
};

const keyBytes = 32;
const keyLine = /^key ([\w+/]{43}=)$/m;
const endingLine = /^([0-9a-f]{16}) (\d+) (committed|unknown|partial|unproven|over|forgotten)$/;
/** After this many notes, or at a start with a file of this size, the file is rewritten with what is still remembered. */
const maxNotes = 15_000;
const maxBytes = 2 * 1024 * 1024;

/** The file of the memory. */
export function commitMemoryOf(pidfile: string): string {
  return `${pidfile}.commits`;
}

/**
 * Opens the memory of a pidfile, and creates it if there is none.
 * @param onFault called once if the file cannot be used: nothing more outlives this instance
 */
export function openCommitMemory(pidfile: string, onFault: (error: unknown) => void): CommitMemory {
  const path = commitMemoryOf(pidfile);
  const endings = new CommitEndings();
  let key: string | null = null;
  let isUsable = true;
  /** The file that was read, and how far. */
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
  /** Reads what other instances have added, or the whole file if one has rewritten it. False: the last line is incomplete. */
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
  const rewrite = (ownKey: string) => {
    const temporary = `${path}.${process.pid}`;
    const lines = [`key ${ownKey}\n`, ...endings.remembered().map(formatEnding)];
    rmSync(temporary, { force: true });
    writeFileSync(temporary, lines.join(''), { mode: 0o600, flag: 'wx' });
    renameSync(temporary, path);
  };

  let isWhole = false;
  attempt(() => {
    // Only the owner may write to it, because it decides what clients learn of their COMMITs.
    closeSync(openLockFile(path));
    isWhole = readOn() && key !== null;
  });
  const ownKey = key ?? randomBytes(keyBytes).toString('base64');
  if (!isWhole || read.bytes > maxBytes) attempt(() => rewrite(ownKey));

  return {
    key: ownKey,
    note: (name, ending) => {
      endings.note(name, ending);
      attempt(() => {
        appendFileSync(path, formatEnding({ ...name, ending }), { mode: 0o600 });
        notes += 1;
        if (notes < maxNotes) return;
        notes = 0;
        readOn();
        rewrite(ownKey);
      });
    },
    of: (name) => {
      attempt(readOn);
      return endings.of(name);
    },
  };
}

/** The text after what was read, or all of it if it is another file. */
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
