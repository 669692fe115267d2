// The meanings of tables' names on a server: base tables, views with their definitions, triggers; and whether they are harmless.
import { analyse } from '../../../shared/sql/analyse.ts';
import { readTriggerBody } from '../../../shared/sql/routines.ts';
import type { TableName } from '../../../shared/sql/table-names.ts';
import type { BuiltIns } from '../../../shared/sql/vocabulary.ts';

/** A server's rules for names, and its built-in functions. */
export type NameRules = {
  /** The schema of names without one. */
  readonly ownSchema: string;
  /** lower_case_table_names is not 0: the case of names does not matter. */
  readonly ignoresCase: boolean;
  readonly builtIns: BuiltIns;
};

/** The further effects of a read or write of a table. */
export type Effects = {
  /** It changes nothing else, leaves nothing in the session, and reads nothing that was left there. */
  readonly isHarmless: boolean;
  /** The same rows give the same answer. */
  readonly isRepeatable: boolean;
};

const unknown: Effects = { isHarmless: false, isRepeatable: false };
const plain: Effects = { isHarmless: true, isRepeatable: true };
/** The server's own tables: their contents may be different the next moment. */
const serverOwned: Effects = { isHarmless: true, isRepeatable: false };
const serverSchemas = new Set(['information_schema', 'performance_schema']);
/** TABLE_TYPE of tables that hold rows. */
const baseTypes = new Set(['BASE TABLE', 'SYSTEM VERSIONED']);
/** Limits of the catalogue; objects beyond them are not known. */
const maxObjects = 200_000;
const maxCharacters = 32 * 1024 * 1024;

type StoredObject = {
  readonly name: string;
  /** The schema of names without one in its definition and its triggers. */
  readonly schema: string;
  readonly isBase: boolean;
  /** Its engine has transactions. */
  readonly isTransactional: boolean;
  /** A view's definition; null: there is none, or the account may not see it. */
  definition: string | null;
  triggers: string[] | null;
  /** Earlier answers; null: there is none yet. */
  read: Effects | null;
  write: Effects | null;
  undoes: boolean | null;
};

/** A table or a view. */
export type ListedTable = { readonly name: string; readonly isView: boolean };

/** Fill it with tables first, then views and triggers; then ask. */
export class StoredObjects {
  readonly #rules: NameRules;
  readonly #schemas = new Map<string, Map<string, StoredObject>>();
  #own: Map<string, StoredObject>;
  #count = 0;
  #characters = 0;
  /** Null: the list was not asked for yet. */
  #listed: readonly ListedTable[] | null = null;

  constructor(rules: NameRules) {
    this.#rules = rules;
    this.#own = this.#schemaOf(this.#fold(rules.ownSchema));
  }

  /** Number of tables and views. */
  get count(): number {
    return this.#count;
  }

  /** The tables and views of the session's own schema, sorted by name. */
  ownTables(): readonly ListedTable[] {
    this.#listed ??= [...this.#own.values()]
      .map(({ name, isBase }) => ({ name, isView: !isBase }))
      .sort((one, other) => (one.name < other.name ? -1 : 1));
    return this.#listed;
  }

  /** @param isTransactional whether a ROLLBACK undoes what is written to it */
  addTable(schema: string, name: string, type: string, isTransactional = false): void {
    if (this.#count >= maxObjects) return;
    this.#count += 1;
    this.#schemaOf(this.#fold(schema)).set(this.#fold(name), {
      name,
      schema,
      isBase: baseTypes.has(type),
      isTransactional,
      definition: null,
      triggers: null,
      read: null,
      write: null,
      undoes: null,
    });
  }

  /** @param definition empty: the account may not see it */
  addView(schema: string, name: string, definition: string): void {
    const view = this.#find(schema, name);
    if (view !== undefined && !view.isBase && this.#admits(definition))
      view.definition = definition;
  }

  addTrigger(schema: string, table: string, body: string): void {
    const found = this.#find(schema, table);
    if (found === undefined) return;
    found.triggers ??= [];
    // An empty body is not known to be harmless.
    found.triggers.push(this.#admits(body) ? body : '');
  }

  /** Whether it knows all of them. */
  holds(tables: readonly TableName[]): boolean {
    return tables.every(
      ({ schema, name }) =>
        isServerOwned(schema) || this.#find(schema ?? this.#rules.ownSchema, name) !== undefined,
    );
  }

  /** The further effects of a read of these tables. */
  effectsOfReading(tables: readonly TableName[]): Effects {
    return this.#effectsOfAll(tables, null, false);
  }

  /** The further effects of a write to these tables, through their triggers and views. */
  effectsOfWriting(tables: readonly TableName[]): Effects {
    return this.#effectsOfAll(tables, null, true);
  }

  /** Whether a ROLLBACK undoes all that a write to these tables does, through their triggers and views too. */
  undoesWrites(tables: readonly TableName[]): boolean {
    return this.effectsOfWriting(tables).isHarmless && this.#undoesAll(tables, null);
  }

  /** For writes that are known to be harmless: their views and triggers have no cycles. */
  #undoesAll(tables: readonly TableName[], home: string | null): boolean {
    return tables.every(({ schema, name }) => {
      const from = schema ?? home;
      const found = from === null ? this.#own.get(this.#fold(name)) : this.#find(from, name);
      if (found === undefined) return false;
      found.undoes ??= this.#undoes(found);
      return found.undoes;
    });
  }

  #undoes({ schema, isBase, isTransactional, definition, triggers }: StoredObject): boolean {
    const { builtIns } = this.#rules;
    if (!isBase) return this.#undoesAll(tablesOf(definition ?? '', builtIns), schema);
    const bodies = triggers ?? [];
    return (
      isTransactional &&
      bodies.every((body) => this.#undoesAll(readTriggerBody(body, builtIns) ?? [], schema))
    );
  }

  /** @param home the schema of those without one; null: the session's */
  #effectsOfAll(tables: readonly TableName[], home: string | null, writes: boolean): Effects {
    let all = plain;
    for (const { schema, name } of tables) {
      const effects = this.#effectsOfOne(schema ?? home, name, writes);
      if (!effects.isHarmless) return unknown;
      if (!effects.isRepeatable) all = serverOwned;
    }
    return all;
  }

  #effectsOfOne(schema: string | null, name: string, writes: boolean): Effects {
    const found = schema === null ? this.#own.get(this.#fold(name)) : this.#find(schema, name);
    if (found === undefined) return isServerOwned(schema) && !writes ? serverOwned : unknown;
    const known = writes ? found.write : found.read;
    if (known !== null) return known;
    // Views and triggers may have cycles: in a cycle the answer is `unknown`.
    if (writes) found.write = unknown;
    else found.read = unknown;
    const effects = this.#findOut(found, writes);
    if (writes) found.write = effects;
    else found.read = effects;
    return effects;
  }

  #findOut({ schema, isBase, definition, triggers }: StoredObject, writes: boolean): Effects {
    if (!isBase)
      return definition === null ? unknown : this.#effectsOfView(definition, schema, writes);
    if (!writes || triggers === null) return plain;
    return triggers.every((body) => this.#isHarmlessTrigger(body, schema)) ? plain : unknown;
  }

  #effectsOfView(definition: string, schema: string, writes: boolean): Effects {
    const { classification } = analyse(definition, this.#rules.builtIns);
    const { kind, tables, leavesSessionClean, readsEarlierSession, readOnlyAllowed, repeatable } =
      classification;
    // A view may lock the rows that it reads.
    const isPlain =
      kind === 'read' && readOnlyAllowed && leavesSessionClean && !readsEarlierSession;
    if (!isPlain || tables === null) return unknown;
    const effects = this.#effectsOfAll(tables, schema, writes);
    return effects.isHarmless && !repeatable ? serverOwned : effects;
  }

  #isHarmlessTrigger(body: string, schema: string): boolean {
    const tables = readTriggerBody(body, this.#rules.builtIns);
    return body !== '' && tables !== null && this.#effectsOfAll(tables, schema, true).isHarmless;
  }

  #admits(text: string): boolean {
    this.#characters += text.length;
    return text !== '' && this.#characters <= maxCharacters;
  }

  #find(schema: string, name: string): StoredObject | undefined {
    return this.#schemas.get(this.#fold(schema))?.get(this.#fold(name));
  }

  #schemaOf(folded: string): Map<string, StoredObject> {
    let schema = this.#schemas.get(folded);
    if (schema === undefined) {
      schema = new Map();
      this.#schemas.set(folded, schema);
    }
    return schema;
  }

  #fold(name: string): string {
    return this.#rules.ignoresCase ? name.toLowerCase() : name;
  }
}

function tablesOf(definition: string, builtIns: BuiltIns): readonly TableName[] {
  return analyse(definition, builtIns).classification.tables ?? [];
}

function isServerOwned(schema: string | null): boolean {
  return schema !== null && serverSchemas.has(schema.toLowerCase());
}
