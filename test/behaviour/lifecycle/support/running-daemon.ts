// One running daemon for the tests of a file: each finds it running, and the next one uses it if it still runs. A failed test's is not used again.
import { after, type TestContext, test } from 'node:test';
import type { Daemon } from '../../../support/daemon.ts';

/** Registers a test that is handed a running daemon and leaves one in the same directory, or none. */
export type TestWithDaemon = (
  title: string,
  body: (daemon: Daemon, t: TestContext) => Promise<void>,
) => void;

/** `start` starts a daemon, if necessary again. The daemon that runs at the end is stopped. */
export function useRunningDaemon(start: () => Promise<Daemon>): TestWithDaemon {
  let spare: Daemon | null = null;
  after(() => spare?.dispose());
  return (title, body) => {
    test(title, async (t) => {
      const daemon = spare ?? (await start());
      spare = null;
      try {
        await body(daemon, t);
      } catch (error) {
        await daemon.dispose();
        throw error;
      }
      if (daemon.findPid() === null) await daemon.dispose();
      else spare = daemon;
    });
  };
}
