// Batches with idempotency keys under faults around COMMIT: executed once, whatever is lost, and every repetition gets the first reply.
import { makeKeyedHistory } from '../../test/support/histories/keyed-history.ts';
import { keyedPromises } from '../../test/support/histories/keyed-judge.ts';
import { Findings, type Verdict } from '../support/verdicts.ts';

const clients = 32;
/** Of so many batches, one kill of a worker, one cut of all connections, one answer to COMMIT that never comes. */
const batchesPerKill = 200;
const batchesPerCut = 250;
const batchesPerDrop = 500;
/** A run that takes longer fails, and says where each client stands. */
const mostMsPerBatch = 90;
const aroundMs = 4 * 60_000;

/** Runs so many batches; resolves to the verdicts. The seed decides what is asked, and how often what goes wrong. */
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
    mostMs: batches * mostMsPerBatch + aroundMs,
  };
  const { breaches, counts, durationMs } = await makeKeyedHistory(plan, say);
  say(`in all, within ${Math.round(durationMs / 1000)} s:`);
  for (const [what, n] of counts) say(`  ${String(n).padStart(6)} ${what}`);
  const findings = new Findings(Object.values(keyedPromises));
  for (const { promise, example } of breaches) findings.breach(promise, example);
  return findings.verdicts();
}
