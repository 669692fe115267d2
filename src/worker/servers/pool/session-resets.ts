// Session resets: bounded in time, counted, and those that run now.
// Must not know why a session is reset.
import { performance } from 'node:perf_hooks';
import type { Log } from '../../../shared/process/log.ts';
import { describeLoss } from './describe-loss.ts';
import type { Session } from './session.ts';

const resetTimeoutMs = 5_000;

/** The resets of one pool. */
export class SessionResets {
  readonly done = { resetsOk: 0, resetsFailed: 0 };
  readonly #log: Log;

  constructor(log: Log) {
    this.#log = log;
  }

  /**
   * Resets a session. Rejects when it could not be done: the connection is then destroyed.
   * @param withinMs the time that it may take
   */
  async reset(session: Session, withinMs = resetTimeoutMs): Promise<void> {
    const { connection } = session;
    const from = performance.now();
    const timer = setTimeout(
      () => connection.destroy(new Error('the session reset took too long')),
      withinMs,
    );
    try {
      await session.reset();
      this.done.resetsOk += 1;
    } catch (cause) {
      this.done.resetsFailed += 1;
      this.#log.debug?.('a session could not be reset', {
        connection: connection.threadId,
        took_ms: Math.round(performance.now() - from),
        error: describeLoss(cause),
      });
      const error = new Error('the session could not be reset', { cause });
      connection.destroy(error);
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }
}
