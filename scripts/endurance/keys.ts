// Batches with idempotency keys under faults around COMMIT: executed once, whatever is lost, and every repetition gets the first reply.
import { makeKeyedHistory } from '../../test/support/histories/keyed-history.ts';
import { keyedPromises } from '../../test/support/histories/keyed-judge.ts';
import { Findings, type Verdict } from '../support/verdicts.ts';

const clients = 32;
/** The number of batches for each kill of a worker, each cut of all connections, and each lost reply to COMMIT. */
const batchesPerKill = 200;
const batchesPerCut = 250;
const batchesPerDrop = 500;
/** A run that takes longer fails, and prints the state of each client. */
const maxMsPerBatch = 90;
const aroundMs = 4 * 60_000;

/** Runs this many batches. Resolves to the verdicts. The seed decides the requests, and how often each fault happens. */
export async function runKeys(
  { batches, seed }: { readonly batches: number; readonly seed: number },
  say: (line: string) => void,
): Promise<Verdict[]> {
  say(`seed ${seed}`);
  const share = (per: number) => Math.max(1, Math.round(batches / per));
  const strikes = { kill: share(batchesPerKill), cut: share(batchesPerCut), crash: 1 };
  const drops = share(batchesPerDrop);
  const plan = {
    seed,
    batches,
    clients,
    strikes,
    drops,
    maxMs: batches * maxMsPerBatch + aroundMs,
  };
  const { breaches, counts, durationMs } = await makeKeyedHistory(plan, say);
  say(`in all, within ${Math.round(durationMs / 1000)} s:`);
  for (const [what, n] of counts) say(`  ${String(n).padStart(6)} ${what}`);
  const findings = new Findings(Object.values(keyedPromises));
  for (const { promise, example } of breaches) findings.breach(promise, example);
  return findings.verdicts();
}
