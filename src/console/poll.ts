// Asks again and again: one question at a time, each with an end, seldom while nobody looks.

const timeoutMs = 1_500;
const hiddenIntervalMs = 30_000;
/** After a failure that came at once. */
const minPauseMs = 250;

/** Questions that go on until the page is left. */
export type Polling = {
  /** Asks now, unless a question is under way. */
  readonly now: () => void;
  /** Asks no more, until it is resumed. */
  readonly pause: (isPaused: boolean) => void;
};

/** Begins to ask every `intervalMs`. @param question must not reject */
export function startPolling(
  intervalMs: number,
  question: (signal: AbortSignal) => Promise<void>,
): Polling {
  let wake = () => {};
  let isPaused = false;
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
      await question(AbortSignal.timeout(timeoutMs));
      const interval = document.hidden ? hiddenIntervalMs : intervalMs;
      const rest = Math.max(minPauseMs, interval - (performance.now() - startedAt));
      await sleep(rest);
      while (isPaused) await sleep(Number.POSITIVE_INFINITY);
    }
  };
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden) wake();
  });
  void run();
  return {
    now: () => wake(),
    pause: (paused) => {
      isPaused = paused;
      wake();
    },
  };
}
