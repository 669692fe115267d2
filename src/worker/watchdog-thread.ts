// The watchdog's thread: compares the parent's id with the supervisor's, and kills its own process when they differ.
import { parentPort, workerData } from 'node:worker_threads';

const { supervisor } = workerData as { supervisor: number };

// A worker must end within 2 s of the supervisor's death.
const pollMs = 500;

setInterval(() => {
  if (process.ppid !== supervisor) process.kill(process.pid, 'SIGKILL');
}, pollMs);
parentPort?.postMessage('watching');
