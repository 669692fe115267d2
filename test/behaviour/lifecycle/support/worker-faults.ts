// Loaded into the daemon's processes by NODE_OPTIONS=--import: makes workers fail on purpose, as the environment says.
// Must not know the gateway's code.
import { isMainThread } from 'node:worker_threads';

if (isMainThread && process.env.DBHTTPD_INSTANCE !== undefined) {
  if (process.env.WORKER_FAULT === 'boot') throw new Error('a fault at boot, on purpose');
  if (process.env.WORKER_FAULT === 'never-ready') process.send = () => true;
  const hoard: number[][] = [];
  process.on('SIGUSR2', () => {
    if (process.env.WORKER_FAULT === 'throw') throw new Error('a fault while serving, on purpose');
    for (;;) {
      if (process.env.WORKER_FAULT === 'heap')
        hoard.push(Array<number>(100_000).fill(hoard.length));
      // An endless loop: no message, no signal handler, no timer gets through.
    }
  });
}
