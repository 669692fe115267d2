// Mutated requests for the real gateway, and two other readers of the same bytes: what the gateway accepts is one request for all.
import { startGateway } from '../../test/support/gateway.ts';
import { Findings, type Verdict } from '../support/verdicts.ts';
import { fuzzHttp, httpPromises } from './http/fuzz.ts';
import { startReaders } from './http/readers.ts';
import { maxRequestBytes } from './http/streams.ts';
import { openDatabase, stopAndLook } from './world.ts';

const promises = {
  ...httpPromises,
  workers: 'no worker ends',
  left: 'nothing is left after the stop',
} as const;

/** The settings of a gateway for such a run. */
export const fuzzedSettings = { workers: 1, pool: 8, max_request_bytes: maxRequestBytes };

/** Sends this many streams, of the seeds from `seed` on. Resolves to the verdicts. */
export async function runHttp(
  { requests, seed }: { readonly requests: number; readonly seed: number },
  say: (line: string) => void,
): Promise<Verdict[]> {
  const findings = new Findings(Object.values(promises));
  const database = await openDatabase();
  const gateway = await startGateway({ database, settings: fuzzedSettings });
  const readers = await startReaders(true);
  const workers = String(gateway.workers());
  const fromMs = performance.now();
  const progress = (done: number) => {
    say(`${done} requests, ${Math.round((done / (performance.now() - fromMs)) * 1000)} a second`);
  };
  const plan = { port: gateway.port, readers, requests, seed, progress };
  const { breaches, counts } = await fuzzHttp(plan);
  progress(requests);
  const often = [...counts].sort(([, one], [, other]) => other - one);
  for (const [what, n] of often) say(`  ${String(n).padStart(8)} ${what}`);
  for (const { promise, example } of breaches) findings.breach(promise, example);
  const now = String(gateway.workers());
  if (now !== workers) findings.breach(promises.workers, `${workers}, then ${now}`);
  await readers.stop();
  for (const what of await stopAndLook(gateway, database)) findings.breach(promises.left, what);
  await gateway.stop();
  await database.stop();
  return findings.verdicts();
}
