// One running daemon for the tests of a file: each finds it running, and leaves it running. A failed test's is not used again.
import { after, test } from 'node:test';
import type { Daemon } from '../../../support/daemon.ts';

/** Registers a test that is handed a running daemon and must leave one in the same directory. */
export type TestWithDaemon = (title: string, body: (daemon: Daemon) => Promise<void>) => void;

/** `start` starts a daemon, and may have to again. What runs at the end is stopped. */
export function useRunningDaemon(start: () => Promise<Daemon>): TestWithDaemon {
  let spare: Daemon | null = null;
  after(() => spare?.dispose());
  return (title, body) => {
    test(title, async () => {
      const daemon = spare ?? (await start());
      spare = null;
      try {
        await body(daemon);
      } catch (error) {
        await daemon.dispose();
        throw error;
      }
      spare = daemon;
    });
  };
}
