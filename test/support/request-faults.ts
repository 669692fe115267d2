// Loaded into the daemon's processes by NODE_OPTIONS=--import: makes what node itself offers throw in a worker, wherever it is
// given text with a mark, and lets a test end the time for headers.
import { existsSync } from 'node:fs';
import { Socket } from 'node:net';
import { isMainThread } from 'node:worker_threads';
import { clientTimeouts } from '../../src/worker/http/limits.ts';

/** Makes `owner[name]` throw for texts that contain the mark. */
function poison(
  owner: object,
  name: string,
  mark: string,
  textOf: (self: unknown, first: unknown) => unknown,
): void {
  const methods = owner as Record<string, (...args: unknown[]) => unknown>;
  const own = methods[name];
  if (own === undefined) throw new Error(`there is no ${name} any more`);
  methods[name] = function (this: unknown, ...args: unknown[]): unknown {
    const text = textOf(this, args[0]);
    if (typeof text === 'string' && text.includes(mark)) throw new TypeError(`on purpose: ${text}`);
    return own.apply(this, args);
  };
}

/** While this file exists, clients have no more time for their headers. */
export const hurryVariable = 'DBHTTPD_TEST_HURRY';

/** Makes the server's check of time limits run as often as it would in a minute, at each of its turns, while the file exists. */
function hurryWhile(path: string): void {
  const own = globalThis.setInterval;
  const ticks = 60_000 / clientTimeouts.checkMs;
  const hurried = (run: () => void, ms?: number): NodeJS.Timeout =>
    own(() => {
      const times = ms === clientTimeouts.checkMs && existsSync(path) ? ticks : 1;
      for (let n = 0; n < times; n += 1) run();
    }, ms);
  globalThis.setInterval = hurried as typeof setInterval;
}

if (isMainThread && process.env.DBHTTPD_INSTANCE !== undefined) {
  poison(String.prototype, 'isWellFormed', 'fault-in-binding', (self) => String(self));
  poison(Buffer, 'byteLength', 'fault-in-sending', (_self, first) => first);
  poison(Socket.prototype, 'write', 'fault-in-replying', (_self, first) => first);
  const { [hurryVariable]: path } = process.env;
  if (path !== undefined) hurryWhile(path);
}
