// Ends this process when its supervisor is gone, even if its main thread is busy.
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';

/** Starts the watchdog thread; resolves once it watches. It lives as long as the process and keeps nothing alive. */
export async function startWatchdog(onLoss: (reason: string) => void): Promise<void> {
  const thread = new Worker(new URL('./watchdog-thread.js', import.meta.url), {
    workerData: { supervisor: process.ppid },
    // The thread needs nothing of the process: it reads one number twice a second.
    env: {},
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: 8, maxYoungGenerationSizeMb: 2 },
  });
  thread.once('error', (error) => onLoss(error.message));
  await once(thread, 'message');
  thread.unref();
}
