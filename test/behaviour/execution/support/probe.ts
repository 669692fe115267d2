// Requests paths again and again from a separate thread, so that a busy test does not slow down the measurement.
import { get } from 'node:http';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';

/** One answer; status 0: none within 10 s. */
export type Probed = { readonly path: string; readonly status: number; readonly ms: number };

type Order = { readonly port: number; readonly paths: readonly string[]; readonly rounds: number };

/** Requests every path in turn, `rounds` times, each on a new connection. Resolves to all answers. */
export function probe(order: Order): Promise<Probed[]> {
  return new Promise((resolve, reject) => {
    const thread = new Worker(new URL(import.meta.url), { workerData: order });
    thread.once('message', resolve).once('error', reject);
  });
}

function ask(port: number, path: string): Promise<Probed> {
  const startedAt = performance.now();
  return new Promise((resolve) => {
    const end = (status: number) => resolve({ path, status, ms: performance.now() - startedAt });
    const signal = AbortSignal.timeout(10_000);
    get({ port, host: '127.0.0.1', path, agent: false, signal }, (response) => {
      response.resume().once('end', () => end(response.statusCode ?? 0));
    }).once('error', () => end(0));
  });
}

if (!isMainThread) {
  const { port, paths, rounds } = workerData as Order;
  const all: Probed[] = [];
  for (let round = 0; round < rounds; round += 1) {
    for (const path of paths) all.push(await ask(port, path));
    // A pace, not a wait: requests without a pause would be load themselves.
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
  parentPort?.postMessage(all);
}
