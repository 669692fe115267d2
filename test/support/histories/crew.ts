// The common parts of every history: a seed, actors that work at the same time, servers that end with it, and a time by which it must have
// ended.
import { blackBox } from '../black-box.ts';
import { createRandom } from '../random.ts';

/** Less than the five minutes that a test file may take, so that the history itself can report its state. */
const suiteMostMs = 200_000;
/** Started parts may take this long to end. */
const stopMs = 60_000;

/** The options of a history. */
export type HistoryWish = {
  readonly name: string;
  readonly seed: number;
  /** It fails when it has not ended by then. */
  readonly maxMs?: number;
  /** Called with lines of progress. */
  readonly say?: (line: string) => void;
};

/** One actor of a history. */
export type Actor = {
  /** Random numbers that depend on the seed and the actor's name alone, not on what others draw meanwhile. */
  readonly random: () => number;
  /** Notes what the actor does now. */
  readonly note: (where: string) => void;
};

type Stoppable = { readonly stop: () => Promise<void> };

/** The actors of one history, and what was started for it. */
export class Crew {
  readonly seed: number;
  readonly say: (line: string) => void;
  readonly #notes = new Map<string, string>();
  readonly #started: Stoppable[] = [];
  #isOver = false;

  constructor(seed: number, say: (line: string) => void) {
    this.seed = seed;
    this.say = say;
  }

  /** Whether the actors must come to an end. */
  get isOver(): boolean {
    return this.#isOver;
  }

  end(): void {
    this.#isOver = true;
  }

  /** Notes what the history itself does now. */
  note(where: string): void {
    this.#notes.set('the history', where);
  }

  /** Starts something that ends with the history at the latest. */
  async start<Started extends Stoppable>(what: string, start: Promise<Started>): Promise<Started> {
    this.note(`starts ${what}`);
    const started = await start;
    this.#started.push(started);
    return started;
  }

  /** Stops one thing that was started. */
  async stop(one: Stoppable): Promise<void> {
    const at = this.#started.indexOf(one);
    if (at >= 0) this.#started.splice(at, 1);
    await one.stop();
  }

  /** Runs the actors, each under its name. Resolves when all have ended. If one fails, the others must end too. */
  async work(actors: Readonly<Record<string, (actor: Actor) => Promise<void>>>): Promise<void> {
    const works = Object.entries(actors).map(async ([name, act]) => {
      const note = (where: string) => void this.#notes.set(name, where);
      note('begins');
      await act({ random: createActorRandom(this.seed, name), note });
      this.#notes.delete(name);
    });
    try {
      await Promise.all(works);
    } catch (error) {
      this.end();
      throw error;
    }
  }

  /** The state of each actor. */
  describe(): string {
    return [...this.#notes].map(([name, where]) => `${name}: ${where}`).join('\n');
  }

  /** Stops everything, the last that was started first; what does not stop in time is left to the end of this process. */
  async stopAll(): Promise<void> {
    this.end();
    for (const one of this.#started.splice(0).reverse()) {
      this.note('stops what was started');
      await within(one.stop(), stopMs, () => new Error('it does not stop'));
    }
  }
}

/** Makes a history: says its seed at once, and fails with every actor's place when it has not ended in time. */
export async function makeHistory<History>(
  { name, seed, maxMs = suiteMostMs, say = print }: HistoryWish,
  make: (crew: Crew) => Promise<History>,
): Promise<History> {
  say(`${name}: seed ${seed}`);
  const crew = new Crew(seed, say);
  blackBox.add({ name: `${name}, seed ${seed}`, show: () => crew.describe() });
  const explain = (problem: string) =>
    new Error(`${name}, seed ${seed}: ${problem}\n${crew.describe()}`);
  try {
    return await within(make(crew), maxMs, () => explain(`has not ended within ${maxMs} ms`));
  } finally {
    await crew.stopAll();
  }
}

/** At once, and not when the test has ended, as diagnostics are. */
function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Random numbers of an actor's own. */
export function createActorRandom(seed: number, name: string): () => number {
  let hash = seed >>> 0;
  for (const byte of Buffer.from(name)) hash = Math.imul(hash ^ byte, 16_777_619) >>> 0;
  return createRandom(hash);
}

/** This many actors of a kind: `client 1`, `client 2` … */
export function several(
  kind: string,
  count: number,
  act: (actor: Actor, number: number) => Promise<void>,
): Readonly<Record<string, (actor: Actor) => Promise<void>>> {
  return Object.fromEntries(
    Array.from({ length: count }, (_, index) => [
      `${kind} ${index + 1}`,
      (actor: Actor) => act(actor, index + 1),
    ]),
  );
}

async function within<Result>(
  work: Promise<Result>,
  maxMs: number,
  problem: () => Error,
): Promise<Result> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(problem()), maxMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
