// The primary of a peer: forks its workers, reports the port once all of them listen, ends with its parent.
import cluster from 'node:cluster';

/** Forks `workers` processes and sends `{ port }` to the parent when the last one listens. A lost worker ends the peer. */
export function serveCrew(workers: number): void {
  let listening = 0;
  cluster.on('listening', (_worker, address) => {
    listening += 1;
    if (listening === workers) process.send?.({ port: address.port });
  });
  cluster.on('exit', () => process.exit(1));
  // The parent's death closes the channel; the workers follow their primary by themselves.
  process.on('disconnect', () => process.exit(0));
  for (let slot = 0; slot < workers; slot += 1) cluster.fork();
}
