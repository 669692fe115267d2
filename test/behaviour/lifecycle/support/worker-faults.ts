// Loaded into the daemon's processes by NODE_OPTIONS=--import: makes workers fail on purpose. WORKER_FAULT says how at boot;
// SIGUSR2 has a worker do what the file says that WORKER_FAULT_FILE names.
import { readFileSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';

function spin(onTurn = () => {}): never {
  // An endless loop: no message, no signal handler, no timer gets through.
  for (;;) onTurn();
}

function fail(how: string): never {
  switch (how) {
    case 'throw':
      throw new Error('a fault while serving, on purpose');
    case 'heap': {
      const hoard: number[][] = [];
      return spin(() => void hoard.push(Array<number>(100_000).fill(hoard.length)));
    }
    default:
      return spin();
  }
}

const { WORKER_FAULT, WORKER_FAULT_FILE = '' } = process.env;
if (isMainThread && process.env.DBHTTPD_INSTANCE !== undefined) {
  if (WORKER_FAULT === 'boot') throw new Error('a fault at boot, on purpose');
  if (WORKER_FAULT === 'never-ready') process.send = () => true;
  process.on('SIGUSR2', () => fail(readFileSync(WORKER_FAULT_FILE, 'utf8')));
}
