// When a dead worker's slot is filled again: (exit, history) -> decision; pure.
// Must not know processes or timers.

/** What a slot remembers of its workers: how many in a row died before they had served. */
export type History = { readonly failures: number };

/** One death: how long the worker had been listening, null if it never did. */
export type Death = { readonly servedMs: number | null };

/** What is remembered from here on, and when the slot is filled again. */
export type Decision = { readonly history: History; readonly delayMs: number };

/** A slot whose workers have not died yet. */
export const noHistory: History = { failures: 0 };

const shortestMs = 100;
const longestMs = 10_000;
// A worker that served this long was sound: its slot is filled at once, however often it is killed.
const soundAfterMs = 500;

/**
 * Decides how long to wait: 0.1 s after a worker that had served, doubling up to 10 s while workers die at boot.
 * `chance` from 0 to 1 takes up to a fifth off, so that slots do not restart in step.
 */
export function decideRestart(death: Death, history: History, chance: number): Decision {
  const wasSound = death.servedMs !== null && death.servedMs >= soundAfterMs;
  const failures = wasSound ? 0 : history.failures + 1;
  const wantedMs = Math.min(longestMs, shortestMs * 2 ** Math.max(0, failures - 1));
  const delayMs = Math.max(shortestMs, Math.round(wantedMs * (1 - chance / 5)));
  return { history: { failures }, delayMs };
}

// 0.1 + 0.2 + … + 3.2 s of patience: a passing fault at boot is over by then, and a lasting one is told before the
// start's own bound. Shorter, and what a supervisor costs to boot would be most of what a failed start costs.
const mostBootDeaths = 7;

/** True when a first start is given up: a slot's workers keep dying before all slots listen. */
export function isHopeless(deathsInSlot: number): boolean {
  return deathsInSlot >= mostBootDeaths;
}
