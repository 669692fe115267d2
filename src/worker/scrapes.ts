// Asks the supervisor for all workers' metrics and matches its answers to who waits.
// Must not know how either is sent or rendered.

/** Scrapes under way in this worker. */
export type Scrapes = {
  /** All workers' metrics; rejects when the supervisor does not answer in time. */
  readonly scrape: () => Promise<string>;
  readonly answer: (requestId: number, text: string) => void;
};

const boundMs = 950;

/** Creates the table of scrapes; `ask` sends one request. */
export function createScrapes(ask: (requestId: number) => void): Scrapes {
  const waiting = new Map<number, (text: string) => void>();
  let lastId = 0;
  return {
    scrape: () =>
      new Promise((resolve, reject) => {
        lastId += 1;
        const requestId = lastId;
        const timer = setTimeout(() => {
          waiting.delete(requestId);
          reject(new Error('the supervisor did not answer in time'));
        }, boundMs);
        waiting.set(requestId, (text) => {
          clearTimeout(timer);
          waiting.delete(requestId);
          resolve(text);
        });
        ask(requestId);
      }),
    answer: (requestId, text) => waiting.get(requestId)?.(text),
  };
}
