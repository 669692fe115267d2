// scripts/soak, once everything is built: options -> one mode -> verdicts.
// Exit 0: every promise kept; 1: one broken, or the run could not be made; 64: command line; 130: stopped by a signal.
import { runCommand, say } from '../support/run-command.ts';
import type { Verdict } from '../support/verdicts.ts';
import { runExplore } from './explore.ts';
import { runExports } from './exports.ts';
import { runHttp } from './http.ts';
import { runKeys } from './keys.ts';
import { runKills } from './kills.ts';
import { runMixed } from './mixed.ts';
import { help, type Order, parseOrder } from './options.ts';
import { runPartitions } from './partitions.ts';
import { runRestarts } from './restarts.ts';
import { runSlow } from './slow.ts';

// The end of a run that hangs beyond every other limit.
const spareMs = 5 * 60_000;
/** The file that runs when the time is over, and its end. */
const exploreSpareMs = 15 * 60_000;
const oneRoundMs = 3 * 3_600_000;
/** Ten times as long as on a quiet machine. */
const mutatedRequestMs = 10;
/** Far more than a thousand rows take in every way, and in the cuts of a round. */
const rowsMs = 100;

function longestMs(order: Order): number {
  switch (order.mode) {
    case 'mixed':
      return order.minutes * 60_000 + spareMs;
    case 'restarts':
      return order.cycles * 10_000 + spareMs;
    case 'kills':
      return order.seconds * 2_000 + spareMs;
    case 'exports':
      return (order.rows / 1000) * (1 + order.cuts) * rowsMs + spareMs;
    case 'slow':
      return 2 * spareMs;
    case 'keys':
      return order.batches * 100 + spareMs;
    case 'http':
      return order.requests * mutatedRequestMs + spareMs;
    case 'partitions':
      return order.minutes * 60_000 + 2 * spareMs;
    case 'explore':
      return order.seed === null ? order.minutes * 60_000 + exploreSpareMs : oneRoundMs;
    default:
      throw new Error(`no such order: ${order satisfies never}`);
  }
}

function run(order: Order): Promise<Verdict[]> {
  switch (order.mode) {
    case 'mixed':
      return runMixed(order.minutes, say);
    case 'restarts':
      return runRestarts(order.cycles, say);
    case 'kills':
      return runKills(order.seconds, say);
    case 'exports':
      return runExports(order, say);
    case 'slow':
      return runSlow(say);
    case 'keys':
      return runKeys(order, say);
    case 'http':
      return runHttp(order, say);
    case 'partitions':
      return runPartitions(order, say);
    case 'explore':
      return runExplore(order, say);
    default:
      throw new Error(`no such order: ${order satisfies never}`);
  }
}

await runCommand<Order>({
  help,
  parse: parseOrder,
  prefix: 'dbhttpd-soak-',
  longestMs,
  run,
});
