// scripts/cluster gateways: restarts three gateways behind haproxy in turn, under load.
// Exit 0: every promise kept; 1: one broken, or the run could not be made; 64: command line; 130: stopped by a signal.
import { parseArgs } from 'node:util';
import { rollGateways } from '../../test/support/clusters/rolling-restart.ts';
import { startDatabase } from '../../test/support/database/mariadb.ts';
import { readCount, runCommand, say } from '../support/run-command.ts';
import type { Verdict } from '../support/verdicts.ts';

const help = `Usage: scripts/cluster gateways [--rounds <n>]    (20)

Three gateways on one MariaDB behind haproxy, with the settings of deploy/haproxy. In each round each gateway is killed by
its pidfile and started again, while clients read and write on /db and /v1/query, on kept and on fresh connections.
`;
const maxRounds = 1000;
/** Ends a run that hangs in spite of its other bounds. */
const longestMs = ({ rounds }: Order) => rounds * 60_000 + 120_000;

type Order = { readonly rounds: number };

function parseOrder(argv: readonly string[]): Order | null {
  const { values } = parseArgs({
    args: [...argv],
    options: { rounds: { type: 'string', default: '20' }, help: { type: 'boolean' } },
  });
  if (values.help === true) return null;
  return { rounds: readCount('rounds', values.rounds, { max: maxRounds }) };
}

async function run({ rounds }: Order): Promise<readonly Verdict[]> {
  const database = await startDatabase({ own: true });
  const { restarts, requests, failed, wrong } = await rollGateways(database, rounds, say);
  await database.stop();
  say(`${restarts} restarts, ${requests} requests`);
  const judge = (promise: string, found: readonly string[]): Verdict => ({
    promise,
    kept: found.length === 0,
    found: found.length === 0 ? '' : `${found.length}: ${found.slice(0, 5).join(' | ')}`,
  });
  return [
    judge('every request succeeds while gateways are restarted', failed),
    judge('every acknowledged write is there, and none is there twice', wrong),
  ];
}

await runCommand({
  help,
  parse: parseOrder,
  prefix: 'dbhttpd-cluster-',
  longestMs,
  run,
});
