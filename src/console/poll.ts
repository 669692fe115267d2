// Repeated requests: one at a time, each with a timeout, and rarely while the page is hidden.

const timeoutMs = 1_500;
const hiddenIntervalMs = 30_000;
/** The pause after an immediate failure. */
const minPauseMs = 250;

/** Requests that repeat as long as the page is open. */
export type Polling = {
  /** Asks now, also while it is paused, unless a request is in flight. */
  readonly now: () => void;
  /** Pauses or resumes. */
  readonly pause: (isPaused: boolean) => void;
};

/** Starts to ask every `intervalMs`. @param question must not reject */
export function startPolling(
  intervalMs: number,
  question: (signal: AbortSignal) => Promise<void>,
): Polling {
  let wake = () => {};
  let isPaused = false;
  /** The answer is needed in any case. */
  let isWanted = false;
  const sleep = (ms: number) =>
    new Promise<void>((resolve) => {
      const timer = Number.isFinite(ms) ? window.setTimeout(resolve, ms) : 0;
      wake = () => {
        window.clearTimeout(timer);
        resolve();
      };
    });
  const run = async () => {
    for (;;) {
      const startedAt = performance.now();
      isWanted = false;
      await question(AbortSignal.timeout(timeoutMs));
      const interval = document.hidden ? hiddenIntervalMs : intervalMs;
      const rest = Math.max(minPauseMs, interval - (performance.now() - startedAt));
      await sleep(rest);
      while (isPaused && !isWanted) await sleep(Number.POSITIVE_INFINITY);
    }
  };
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden) wake();
  });
  void run();
  return {
    now: () => {
      isWanted = true;
      wake();
    },
    pause: (paused) => {
      isPaused = paused;
      wake();
    },
  };
}
