// Runs in rounds, with a strike in each: their shared options, the rounds one after the other, and what is printed about them.
import type { FailoverJudgement } from '../../test/support/histories/failover-judge.ts';
import { Fault } from './command-line.ts';
import { readCount, say } from './run-command.ts';
import { median } from './statistics.ts';
import { Findings, type Verdict } from './verdicts.ts';

/** The options of a run in rounds. */
export type Rounds<Strike> = {
  readonly rounds: number;
  /** The strikes, in turn. */
  readonly kinds: readonly Strike[];
  readonly seed: number;
};

const maxRounds = 1_000;
const maxSeed = 999_999;

/** The options, as parseArgs takes them. @param rounds the number of rounds by default */
export function roundOptions(rounds: number) {
  return {
    rounds: { type: 'string', default: String(rounds) },
    how: { type: 'string' },
    seed: { type: 'string', default: String(1 + (Date.now() % maxSeed)) },
    help: { type: 'boolean', default: false },
  } as const;
}

/** Reads the options. @param strikes all that exist. @throws Fault */
export function parseRounds<Strike extends string>(
  values: { readonly rounds: string; readonly how?: string; readonly seed: string },
  strikes: readonly Strike[],
): Rounds<Strike> {
  const { how } = values;
  const rounds = readCount('rounds', values.rounds, { max: maxRounds });
  const seed = readCount('seed', values.seed, { min: 0, max: maxSeed });
  const wanted = how?.split(',') ?? [...strikes];
  const kinds = strikes.filter((kind) => wanted.includes(kind));
  if (kinds.length < wanted.length) throw new Fault(`--how takes ${strikes.join(', ')}`);
  return { rounds, kinds, seed };
}

/** The result of one round. */
export type Round = Pick<FailoverJudgement, 'breaches' | 'servedMs'> & {
  readonly counts: ReadonlyMap<string, number>;
  /** A description of the round, with its figures. */
  readonly lead: string;
  /** More about it, if something went wrong. */
  readonly stalled?: string | null;
};

/**
 * Plays the rounds, and prints a line as each one ends. Resolves to a verdict for each promise. `play` gets the strike and the round's own
 * seed.
 * @param since the beginning of the time until a write succeeds
 */
export async function playRounds<Strike>(
  { rounds, kinds, seed }: Rounds<Strike>,
  { promises, since }: { readonly promises: readonly string[]; readonly since: string },
  play: (how: Strike, seed: number) => Promise<Round>,
): Promise<Verdict[]> {
  const findings = new Findings(promises);
  const served: number[] = [];
  for (let round = 1; round <= rounds; round += 1) {
    const how = kinds[(round - 1) % kinds.length] as Strike;
    const reported = await play(how, seed + round);
    say(`${round}/${rounds} ${describeRound(reported)}`);
    if (typeof reported.stalled === 'string') say(reported.stalled);
    for (const { promise, example } of reported.breaches) findings.breach(promise, example);
    if (reported.servedMs !== null) served.push(reported.servedMs);
  }
  if (served.length > 0) {
    const [middle, most] = [median(served), Math.max(...served)].map(Math.round);
    say(`served ${middle} ms after ${since} in the median, ${most} ms at most`);
  }
  return findings.verdicts();
}

function describeRound({ lead, servedMs, breaches, counts }: Round): string {
  const reported = [...counts].map(([what, n]) => `${n} ${what}`).join(', ');
  const service =
    servedMs === null ? 'never served again' : `served after ${Math.round(servedMs)} ms`;
  return `${lead}, ${service}, ${breaches.length} breaches: ${reported}`;
}
