// Loaded into the daemon's processes by NODE_OPTIONS=--import: makes what node itself offers throw in a worker, wherever it is
// given text with a mark, and lets a test end the time for headers.
import { existsSync } from 'node:fs';
import { OutgoingMessage, Server } from 'node:http';
import { isMainThread } from 'node:worker_threads';

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

/** Makes Node's servers find the time for headers over, at their next check, while the file exists. */
function hurryWhile(path: string): void {
  const set = new WeakMap<object, number>();
  Object.defineProperty(Server.prototype, 'headersTimeout', {
    get(this: object) {
      return existsSync(path) ? 1 : set.get(this);
    },
    set(this: object, ms: number) {
      set.set(this, ms);
    },
  });
}

if (isMainThread && process.env.DBHTTPD_INSTANCE !== undefined) {
  poison(String.prototype, 'isWellFormed', 'fault-in-binding', (self) => String(self));
  poison(Buffer, 'byteLength', 'fault-in-sending', (_self, first) => first);
  poison(OutgoingMessage.prototype, '_send', 'fault-in-replying', (_self, first) => first);
  const { [hurryVariable]: path } = process.env;
  if (path !== undefined) hurryWhile(path);
}
