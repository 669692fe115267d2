// scripts/cluster gateways: three gateways behind haproxy, restarted in turn under load, again and again.
// Must not know the gateway's code.
// Exit 0: every promise kept; 1: one broken, or the run could not be made; 64: command line.
import { inspect, parseArgs } from 'node:util';
import { startDatabase } from '../../test/support/mariadb.ts';
import { signal } from '../../test/support/processes.ts';
import { rollGateways } from '../../test/support/rolling-restart.ts';
import { openRunDirectory, survivors } from '../support/survivors.ts';
import { renderVerdicts, type Verdict } from '../support/verdicts.ts';

const help = `Usage: scripts/cluster gateways [--rounds <n>]    (20)

Three gateways on one MariaDB behind haproxy, with the settings of deploy/haproxy. In each round each gateway is killed by
its pidfile and started again, while clients read and write on /db and /v1/query, on kept and on fresh connections.
`;
const mostRounds = 1000;
/** An end for a run that hangs where no other bound holds. */
const longestMs = (rounds: number) => rounds * 60_000 + 120_000;

const say = (line: string) => process.stdout.write(`${line}\n`);

/** Null: not to be understood. */
function readRounds(): number | 'help' | null {
  try {
    const { values } = parseArgs({
      options: { rounds: { type: 'string', default: '20' }, help: { type: 'boolean' } },
    });
    if (values.help === true) return 'help';
    const rounds = Number(values.rounds);
    return Number.isInteger(rounds) && rounds > 0 && rounds <= mostRounds ? rounds : null;
  } catch {
    return null;
  }
}

async function run(rounds: number): Promise<number> {
  const directory = openRunDirectory('dbhttpd-cluster-');
  setTimeout(() => {
    say('this run hangs, and is ended');
    process.exit(1);
  }, longestMs(rounds)).unref();
  const database = await startDatabase({ own: true });
  const { restarts, requests, failed, wrong } = await rollGateways(database, rounds, say);
  await database.stop();
  const left = await survivors(directory);
  for (const { pid } of left) signal(pid, 'SIGKILL');
  const told = (promise: string, found: readonly string[]): Verdict => ({
    promise,
    kept: found.length === 0,
    found: found.length === 0 ? '' : `${found.length}: ${found.slice(0, 5).join(' | ')}`,
  });
  say(`${restarts} restarts, ${requests} requests`);
  const verdicts = [
    told('every request succeeds while gateways are restarted', failed),
    told('every acknowledged write is there, and none is there twice', wrong),
    told(
      'no process outlives the run',
      left.map(({ pid, command }) => `${pid} ${command}`),
    ),
  ];
  say(renderVerdicts(verdicts));
  return verdicts.every(({ kept }) => kept === true) ? 0 : 1;
}

const rounds = readRounds();
if (rounds === 'help') {
  say(help);
} else if (rounds === null) {
  process.stderr.write(help);
  process.exitCode = 64;
} else {
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => process.exit(130));
  try {
    process.exitCode = await run(rounds);
  } catch (error) {
    process.stderr.write(`${inspect(error)}\n`);
    process.exit(1);
  }
}
