// The named statements of a worker: which of them a client may call, and what is prepared for their calls.
import { type Client, isAllowed } from '../../../shared/clients/client.ts';
import { type CallableStatement, prepareStatement } from '../../../shared/named/call.ts';
import type { NamedBySection } from '../../../shared/named/load-sections.ts';
import { type JsonSchema, schemaOfParameters } from '../../../shared/named/parameter-schema.ts';
import type { EnumValues } from '../../../shared/named/scalar.ts';
import type { NamedStatement } from '../../../shared/named/statement.ts';
import { type AllSections, Sections, type SqlSection } from '../sections.ts';

/** The present knowledge of a section's database that statements need. */
export type NamedFacts = {
  /** The values of an ENUM column of a section's database. */
  readonly enumValues: (
    section: string,
    table: string,
    column: string,
  ) => ReadonlySet<string> | null;
  /** The schema of a row of a statement's answer; null: its columns are not known yet. */
  readonly rowSchema: (section: string, name: string) => JsonSchema | null;
  /** One object for each section that is known; another object after its database was read again. */
  readonly states: () => readonly object[];
};

/** For as long as nothing is known of the database. */
export const nothingKnown: NamedFacts = {
  enumValues: () => null,
  rowSchema: () => null,
  states: () => [],
};

/** A statement, and what is made of it when it is first needed: most calls of a worker are calls of few statements. */
export class NamedEntry {
  readonly statement: NamedStatement;
  /** The section's name. */
  readonly section: string;
  readonly #facts: NamedFacts;
  readonly #enumValues: EnumValues;
  #callable: CallableStatement | null = null;

  constructor(statement: NamedStatement, section: string, facts: NamedFacts) {
    this.statement = statement;
    this.section = section;
    this.#facts = facts;
    this.#enumValues = (table, column) => facts.enumValues(section, table, column);
  }

  get callable(): CallableStatement {
    this.#callable ??= prepareStatement(this.statement, this.#enumValues);
    return this.#callable;
  }

  /** Whether a call of it has been prepared. */
  get isPrepared(): boolean {
    return this.#callable !== null;
  }

  /** The schema of the object `params`, with the values of enumerations as they are known now. */
  get parameters(): JsonSchema {
    return schemaOfParameters(this.statement, this.#enumValues);
  }

  /** The schema of a row of its answer; null: its columns are not known yet. */
  get row(): JsonSchema | null {
    return this.#facts.rowSchema(this.section, this.statement.name);
  }

  /** Whether a GET may call it: it only reads, and its answer is rows. */
  get isForGet(): boolean {
    const { kind, isRead } = this.statement;
    return isRead && (kind === 'one' || kind === 'many');
  }
}

/** The statements of all sections of a worker. */
export class NamedStatements {
  readonly #sections: Sections<SqlSection>;
  readonly #facts: NamedFacts;
  #byName: ReadonlyMap<string, NamedEntry> = new Map();
  #all: readonly NamedEntry[] = [];
  #lists = new WeakMap<Client, readonly NamedEntry[]>();

  constructor(all: AllSections, named: NamedBySection, facts: NamedFacts) {
    this.#sections = new Sections(all, (served) => served);
    this.#facts = facts;
    this.replace(named);
  }

  /** Uses these statements from now on, and no others. */
  replace(named: NamedBySection): void {
    const entries = Object.entries(named).flatMap(([section, statements]) =>
      statements.map((statement) => new NamedEntry(statement, section, this.#facts)),
    );
    this.#all = entries.sort((one, other) => (one.statement.name < other.statement.name ? -1 : 1));
    this.#byName = new Map(entries.map((entry) => [entry.statement.name, entry]));
    this.#lists = new WeakMap();
  }

  /** Finds a statement that the client may call. Null: it may not, or there is none. @param section null: any */
  find(client: Client, name: string, section: string | null): NamedEntry | null {
    const entry = this.#byName.get(name);
    if (entry === undefined || !this.#mayCall(client, entry)) return null;
    return section === null || section === entry.section ? entry : null;
  }

  /** All statements that the client may call, by name. The same array until they are replaced. */
  list(client: Client): readonly NamedEntry[] {
    const known = this.#lists.get(client);
    if (known !== undefined) return known;
    const own = this.#all.filter((entry) => this.#mayCall(client, entry));
    this.#lists.set(client, own);
    return own;
  }

  /** All statements, by name. */
  get all(): readonly NamedEntry[] {
    return this.#all;
  }

  /** The objects on which the schemas of parameters and rows depend: while these are the same, so are the schemas. */
  get states(): readonly object[] {
    return this.#facts.states();
  }

  /** The section of a statement that the client may call, with the client's limits. */
  sectionOf(client: Client, { section }: NamedEntry): SqlSection {
    return this.#sections.for(client).of(section);
  }

  #mayCall(client: Client, { statement, section }: NamedEntry): boolean {
    if (!isAllowed(client, 'named')) return false;
    if (statement.for !== null && !statement.for.includes(client.name)) return false;
    return this.#sections.for(client).names.usable.includes(section);
  }
}
