// Waiting, bounded, for what sends no event: a process of another parent, a file, a server's process list.
// Must not be used where an event exists.
import { setTimeout as pause } from 'node:timers/promises';

/**
 * Asks again and again until `ask` gives something other than undefined, null or false, and resolves to it.
 * Rejects after `timeoutMs` with `what` in the message, and with the last error of `ask` as the cause.
 */
export async function eventually<Answer>(
  what: string,
  ask: () => Answer | Promise<Answer>,
  { timeoutMs = 30_000, everyMs = 10 } = {},
): Promise<Exclude<Answer, undefined | null | false>> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    let cause: unknown;
    try {
      const answer = await ask();
      if (answer !== undefined && answer !== null && answer !== false) {
        return answer as Exclude<Answer, undefined | null | false>;
      }
    } catch (error) {
      cause = error;
    }
    if (performance.now() > deadline) {
      throw new Error(`not within ${timeoutMs} ms: ${what}`, { cause });
    }
    await pause(everyMs);
  }
}
