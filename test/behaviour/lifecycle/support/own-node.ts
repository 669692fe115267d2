// A daemon that runs by a separate path of node. While that path leads to itself, the system refuses every fork with ELOOP, which node throws.
import { copyFileSync, linkSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { type Daemon, type Finished, runCommand } from '../../../support/daemon.ts';

/** A way to start the daemon, and to refuse and allow its forks. */
export type OwnNode = {
  readonly start: () => Promise<Finished>;
  readonly refuseForks: () => void;
  readonly allowForks: () => void;
};

/** Puts node into the daemon's directory. */
export function createOwnNode({ directory, configPath, findPid }: Daemon): OwnNode {
  const path = join(directory, 'node');
  const aside = `${path}.aside`;
  try {
    linkSync(process.execPath, path);
  } catch {
    // It is on another file system, or belongs to another user.
    copyFileSync(process.execPath, path);
  }
  return {
    start: async () => {
      const finished = await runCommand(['-c', configPath, '-s', 'world'], {}, [path]);
      findPid();
      return finished;
    },
    refuseForks: () => {
      renameSync(path, aside);
      symlinkSync(path, path);
    },
    allowForks: () => {
      rmSync(path);
      renameSync(aside, path);
    },
  };
}
