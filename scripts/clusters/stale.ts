// scripts/cluster stale: reads from a MariaDB primary and two replicas that lag unequally, through two gateways, with and without the consistency
// token. Prints how many reads saw less than was seen before.
// Exit 0: every promise kept; 1: one broken, or the run could not be made; 64: command line; 130: stopped by a signal.
import { parseArgs } from 'node:util';
import {
  type ConsistencyHistory,
  makeConsistencyHistories,
} from '../../test/support/histories/consistency-history.ts';
import { readCount, runCommand, say } from '../support/run-command.ts';
import { Findings, type Verdict } from '../support/verdicts.ts';

const help = `Usage: scripts/cluster stale [--reads <n>] [--minutes <n>] [--semi-sync] [--seed <n>]

Makes 100000 reads with X-Consistency-Token, after a tenth as many without: by /db, /v1/query, QUERY, batches and long replies, through two
gateways that know different replicas, under writes. Each reply is compared with what its client had seen, or had received from another.

  --minutes    the run ends after this many minutes (30) at the latest, with the reads made until then
  --semi-sync  with each write the primary waits for a replica, and shows it later than the replica (AFTER_SYNC)
  --seed       decides which client reads what, and where, and when replicas lag; it is printed
`;

const promises = {
  never: 'with a token no reply shows less than its client had seen',
  contract: 'every reply is one of those in the contract',
  proven: 'where the server can prove it, no reply is called unverified: 1 of 1000 at most',
} as const;

const maxSeed = 999_999;
const maxReads = 10_000_000;
const maxMinutes = 600;
const maxUnverified = 1 / 1000;
/** Starting and stopping servers and gateways. */
const aroundMs = 120_000;
const minuteMs = 60_000;

type Order = {
  readonly reads: number;
  readonly minutes: number;
  readonly semiSync: boolean;
  readonly seed: number;
};

function parseOrder(argv: readonly string[]): Order | null {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      reads: { type: 'string', default: '100000' },
      minutes: { type: 'string', default: '30' },
      'semi-sync': { type: 'boolean', default: false },
      seed: { type: 'string', default: String(1 + (Date.now() % maxSeed)) },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return null;
  return {
    reads: readCount('reads', values.reads, { max: maxReads }),
    minutes: readCount('minutes', values.minutes, { max: maxMinutes }),
    semiSync: values['semi-sync'],
    seed: readCount('seed', values.seed, { max: maxSeed }),
  };
}

async function runHistories({ minutes, ...plan }: Order): Promise<Verdict[]> {
  say(`seed ${plan.seed}`);
  const maxMs = minutes * minuteMs;
  const { without, withTokens } = await makeConsistencyHistories({ ...plan, maxMs });
  say(describeHistory('without tokens', without));
  say(describeHistory('with tokens', withTokens));
  const findings = new Findings(Object.values(promises));
  for (const example of withTokens.older) findings.breach(promises.never, example);
  for (const example of [...without.strange, ...withTokens.strange]) {
    findings.breach(promises.contract, example);
  }
  const unverified = withTokens.counts.get('200 unverified') ?? 0;
  if (unverified > withTokens.reads * maxUnverified) {
    findings.breach(promises.proven, `${unverified} of ${withTokens.reads}`);
  }
  return findings.verdicts();
}

function describeHistory(name: string, history: ConsistencyHistory): string {
  const { older, judged, moved, counts } = history;
  const sums = [...counts].map(([what, n]) => `${n} ${what}`).join(', ');
  const { toReplica, toPrimary } = moved;
  return `${name}: ${older.length} of ${judged} older than what had been seen; ${toReplica} moved to another replica, ${toPrimary} to the primary (${sums})`;
}

await runCommand({
  help,
  parse: parseOrder,
  prefix: 'dbhttpd-stale-',
  longestMs: ({ minutes }) => minutes * minuteMs * 2 + aroundMs,
  run: runHistories,
});
