// Waiting, bounded, for what sends no event: a process of another parent, a file, a server's process list.
import { setTimeout as pause } from 'node:timers/promises';

/** The pauses between two looks. Each takes a tenth of the time that has passed, within these limits: a look costs the tests beside it time. */
const [shortestMs, longestMs] = [10, 200];

/**
 * Calls `ask` again and again until it returns something other than undefined, null or false, and resolves to it. Rejects after `timeoutMs`
 * with `what` in the message, and with the last error of `ask` as the cause.
 */
export async function eventually<Answer>(
  what: string,
  ask: () => Answer | Promise<Answer>,
  { timeoutMs = 30_000, everyMs }: { timeoutMs?: number; everyMs?: number } = {},
): Promise<Exclude<Answer, undefined | null | false>> {
  const from = performance.now();
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
    const passedMs = performance.now() - from;
    if (passedMs > timeoutMs) {
      throw new Error(`not within ${timeoutMs} ms: ${what}`, { cause });
    }
    await pause(everyMs ?? Math.min(longestMs, Math.max(shortestMs, passedMs / 10)));
  }
}
