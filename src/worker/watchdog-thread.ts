// The watchdog's thread: compares the parent's id with the supervisor's, and kills its own process when they differ.
import { parentPort, workerData } from 'node:worker_threads';

const { supervisor } = workerData as { supervisor: number };

/** A worker must end within 2 s of the supervisor's death. */
const pollMs = 500;
let isOrphan = false;

setInterval(() => {
  // A main thread that is not busy has had the time until this turn to write its last line and to end by itself.
  if (isOrphan) process.kill(process.pid, 'SIGKILL');
  isOrphan = process.ppid !== supervisor;
}, pollMs);
parentPort?.postMessage('watching');
