// Loaded into the daemon's processes by NODE_OPTIONS=--import: of the names that end in `.test`, DNS knows `db.test` alone, and it is
// silent while the file of SILENT_DNS exists. The system's own resolver cannot be made silent for one process.
import dns, { type LookupOptions } from 'node:dns';
import { existsSync } from 'node:fs';

const { SILENT_DNS = '' } = process.env;
const usual = dns.lookup;

type Answer = (error: Error | null, address?: unknown, family?: number) => void;

/** As `dns.lookup` with options; never answers while DNS is silent. */
function lookup(name: string, options: LookupOptions, answer: Answer): void {
  if (!name.endsWith('.test')) {
    usual(name, options, answer);
    return;
  }
  if (existsSync(SILENT_DNS)) return;
  process.nextTick(() => {
    if (name !== 'db.test') {
      const message = `getaddrinfo ENOTFOUND ${name}`;
      const fields = { code: 'ENOTFOUND', errno: -3008, syscall: 'getaddrinfo' };
      answer(Object.assign(new Error(message), fields));
    } else if (options.all === true) answer(null, [{ address: '127.0.0.1', family: 4 }]);
    else answer(null, '127.0.0.1', 4);
  });
}

Object.assign(dns, {
  lookup: (name: string, ...rest: [Answer] | [LookupOptions, Answer]) =>
    rest.length === 1 ? usual(name, rest[0]) : lookup(name, ...rest),
});
