// The price of HTTP for a driver: point queries by @planetscale/database through a gateway, beside mysql2 directly to the server.
import { join } from 'node:path';
import { readUsage } from '../support/proc.ts';
import { runCommand } from './command.ts';
import type { Database } from './database.ts';
import type { Reading } from './reading.ts';
import { startLoggingGateway } from './servers.ts';

const program = join(import.meta.dirname, 'driver-loop.js');
const token = 'a-token-of-the-benchmark';

/** The work of one client process. */
type Loop = {
  readonly queries: number;
  readonly seconds: number;
  readonly cpuUs: number;
  readonly errors: number;
  /** Queries until all code was compiled, which do not count. */
  readonly before: number;
};

/**
 * Queries a second by the driver, 32 at once from one process; the note has mysql2's, and what each query costs client and gateway in
 * CPU. One after the other, in one reading: what disturbs the machine for long disturbs both.
 */
export async function measureDrivers(database: Database, signal: AbortSignal): Promise<Reading> {
  const gateway = await startLoggingGateway(database, { drivers: 'planetscale', token });
  try {
    const { host, port, user, password, name } = database;
    const before = readUsage(gateway.pid).cpuUs;
    const url = `http://app:${token}@127.0.0.1:${gateway.port}`;
    const driver = await runLoop(['driver', url], signal);
    const gatewayUs = readUsage(gateway.pid).cpuUs - before;
    const direct = await runLoop(['mysql2', host, String(port), user, password, name], signal);
    const gatewayEach = gatewayUs / Math.max(1, driver.before + driver.queries);
    return {
      value: driver.queries / driver.seconds,
      errors: driver.errors + direct.errors,
      note: `client ${each(driver)} µs, gateway ${Math.round(gatewayEach)} µs; mysql2 ${Math.round(direct.queries / direct.seconds)} a second, client ${each(direct)} µs`,
    };
  } finally {
    await gateway.stop();
  }
}

function each({ cpuUs, queries }: Loop): number {
  return Math.round(cpuUs / Math.max(1, queries));
}

async function runLoop(args: readonly string[], signal: AbortSignal): Promise<Loop> {
  const output = await runCommand({
    command: process.execPath,
    args: [program, ...args],
    timeoutMs: 60_000,
    signal,
  });
  return JSON.parse(output) as Loop;
}
