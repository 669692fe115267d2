// The sections that an endpoint serves, those of them that a client may use, and the one that a request means.
import type { Client } from '../../shared/clients/client.ts';
import type { Config } from '../../shared/config/config.ts';
import { type Failure, refusal } from '../failure/failure.ts';
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

/** The names that a request may give, in the order of the command line. */
export type SectionNames = {
  /** Those that its client may use. */
  readonly usable: readonly string[];
  /** Those that are served. */
  readonly served: readonly string[];
};

/** An endpoint's own values for each section. */
export class Sections<Kept> {
  readonly #all: AllSections;
  readonly #keep: (served: SqlSection) => Kept;
  readonly #served: readonly string[];
  readonly #whole: ReadonlyMap<string, Kept>;
  /** Clients are replaced, and these with them. */
  readonly #views = new WeakMap<Client, UsableSections<Kept>>();

  /** @param keep called for each section, and for each with the limits of a client */
  constructor(all: AllSections, keep: (served: SqlSection) => Kept) {
    this.#all = all;
    this.#keep = keep;
    this.#served = all.map(({ config }) => config.section);
    this.#whole = new Map(all.map((served) => [served.config.section, keep(served)]));
  }

  /** The sections as a client may use them. */
  for(client: Client): UsableSections<Kept> {
    const known = this.#views.get(client);
    if (known !== undefined) return known;
    const view = this.#view(client);
    this.#views.set(client, view);
    return view;
  }

  #view(client: Client): UsableSections<Kept> {
    const usable = this.#all.filter(({ config }) => mayUse(client, config.section));
    const keepFor = (served: SqlSection): Kept =>
      isLimited(client)
        ? this.#keep({ ...served, config: limit(served.config, client) })
        : (this.#whole.get(served.config.section) as Kept);
    const kept = usable.map((served) => [served.config.section, keepFor(served)] as const);
    return new UsableSections(kept, this.#served);
  }
}

/** The sections that a client may use, with its limits. */
export class UsableSections<Kept> {
  readonly names: SectionNames;
  /** Null: it may use none. */
  readonly first: Kept | null;
  readonly #byName: ReadonlyMap<string, Kept>;

  constructor(kept: readonly (readonly [string, Kept])[], served: readonly string[]) {
    this.names = { usable: kept.map(([name]) => name), served };
    this.#byName = new Map(kept);
    this.first = kept[0]?.[1] ?? null;
  }

  /** @param name one that `whyNotSection` has let pass; null: the request names none, and means the first */
  of(name: string | null): Kept {
    return (name === null ? this.first : this.#byName.get(name)) as Kept;
  }
}

function mayUse({ sections }: Client, section: string): boolean {
  return sections === null || sections.includes(section);
}

function isLimited(client: Client): boolean {
  const { readOnly, maxRows, maxResultBytes, statementTimeoutMs } = client;
  return readOnly || maxRows !== null || maxResultBytes !== null || statementTimeoutMs !== null;
}

/** The settings of a section for a client: the smaller value wins. */
function limit(config: Config, client: Client): Config {
  return Object.freeze({
    ...config,
    readOnly: config.readOnly || client.readOnly,
    maxRows: lowerLimit(config.maxRows, client.maxRows ?? 0),
    maxResultBytes: lowerLimit(config.maxResultBytes, client.maxResultBytes ?? 0),
    statementTimeoutMs: Math.min(
      config.statementTimeoutMs,
      client.statementTimeoutMs ?? config.statementTimeoutMs,
    ),
  });
}

/** The lower of two limits, where 0 is none. */
export function lowerLimit(one: number, other: number): number {
  return one === 0 || other === 0 ? Math.max(one, other) : Math.min(one, other);
}

/** The failure of a request whose client may use none of the sections. */
export const noSection = refusal('FORBIDDEN', 'This client may use none of the sections here.');

/**
 * Why a request may not have the section that it names; null: it may. A section that its client may not use is named only if it is served.
 * @param key the request's name for a section
 * @param name what it says there; undefined: nothing
 */
export function whyNotSection(
  key: string,
  name: unknown,
  { usable, served }: SectionNames,
): Failure | null {
  if (usable.length === 0) return noSection;
  if (name === undefined || usable.includes(name as string)) return null;
  if (!served.includes(name as string)) {
    return refusal('WRONG_SERVER', describeUnknown(key, usable));
  }
  return refusal('FORBIDDEN', `This client may not use the section ${JSON.stringify(name)}.`);
}

/** The message for a request that names another section. */
function describeUnknown(key: string, names: readonly string[]): string {
  const usable = names.map((name) => JSON.stringify(name)).join(', ');
  return `${key} names a section that is not served here. This client may use ${usable}.`;
}
