// scripts/cluster primary: plays twelve histories of failovers, partitions, restarts and restores, each with fresh servers, and compares where a
// write goes at the end with where it must go.
// Exit 0: each as it must be; 1: one is not, or the run could not be made; 64: command line; 130: stopped by a signal.
import { parseArgs } from 'node:util';
import { type PrimaryCase, primaryCases } from '../../test/support/histories/primary-cases.ts';
import { Fault } from '../support/command-line.ts';
import { runCommand, say } from '../support/run-command.ts';
import { Findings, type Verdict } from '../support/verdicts.ts';

const help = `Usage: scripts/cluster primary [--cases <n>,…]

Twelve histories, each with its own MariaDB primary and two replicas: a former primary that returns, partitions, gateways without a
memory and with an old one, lossy and double failovers, switchovers, errant rows, chains, restores, and two workers that see
opposite halves.

  --cases  only these, by their numbers
`;

const longestCaseMs = 120_000;

type Order = { readonly cases: readonly PrimaryCase[] };

function parseOrder(argv: readonly string[]): Order | null {
  const { values } = parseArgs({
    args: [...argv],
    options: { cases: { type: 'string' }, help: { type: 'boolean', default: false } },
  });
  if (values.help) return null;
  const wanted = values.cases?.split(',').map(Number);
  const cases = primaryCases.filter(({ number }) => wanted?.includes(number) ?? true);
  if (cases.length === 0 || (wanted !== undefined && cases.length < wanted.length)) {
    throw new Fault(`--cases takes numbers from 1 to ${primaryCases.length}`);
  }
  return { cases };
}

async function runCases({ cases }: Order): Promise<Verdict[]> {
  const findings = new Findings(cases.map(({ promise }) => promise));
  for (const { number, promise, play } of cases) {
    const steps = await play();
    say(`${number}. ${promise}`);
    for (const { what, expected, found, evidence } of steps) {
      const isRight = expected === found;
      say(`   ${isRight ? 'ok ' : 'NOT'} ${found.padEnd(13)} ${what}${evidence}`);
      if (!isRight) findings.breach(promise, `${what}: ${found}, not ${expected}`);
    }
  }
  return findings.verdicts();
}

await runCommand({
  help,
  parse: parseOrder,
  prefix: 'dbhttpd-primary-',
  longestMs: ({ cases }) => cases.length * longestCaseMs,
  run: runCases,
});
