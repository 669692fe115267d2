// The sections that an endpoint serves, and how it finds the one that a request names.
import type { Config } from '../../shared/config/config.ts';
import type { ExchangeContext } from '../request/exchange.ts';
import type { SqlContext } from './statement.ts';

/** A section: its settings, and what runs its statements. */
export type SqlSection = {
  readonly config: Config;
  readonly context: SqlContext & ExchangeContext;
};

/** All of them. The first is the instance's: its settings are also those of the instance. */
export type AllSections = readonly [SqlSection, ...SqlSection[]];

/** Whether any of them takes idempotency keys. */
export function takesKeys(all: AllSections): boolean {
  return all.some(({ config }) => config.idempotencyTable !== null);
}

/** An endpoint's own values for each section. */
export class Sections<Kept> {
  /** In the order of the command line. */
  readonly names: readonly string[];
  readonly #first: Kept;
  readonly #byName: ReadonlyMap<string, Kept>;

  constructor(all: AllSections, keep: (served: SqlSection) => Kept) {
    const kept = all.map((served) => [served.config.section, keep(served)] as const);
    this.names = kept.map(([name]) => name);
    this.#byName = new Map(kept);
    this.#first = this.#byName.get(all[0].config.section) as Kept;
  }

  /** @param name one of `names`; null: the request names none */
  of(name: string | null): Kept {
    return name === null ? this.#first : (this.#byName.get(name) as Kept);
  }
}

/** The message for a request that names another section. */
export function describeUnknown(key: string, names: readonly string[]): string {
  const verb = names.length === 1 ? 'is' : 'are';
  return `${key} is not served here; there ${verb} ${names.map((name) => JSON.stringify(name)).join(', ')}`;
}
