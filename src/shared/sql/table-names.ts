// The tables that a statement names, from its tokens as they go by. In doubt they are not known.
import { tokenKinds } from './lexer.ts';
import { words } from './vocabulary.ts';

/** A table as a statement names it; null means the session's schema. */
export type TableName = { readonly schema: string | null; readonly name: string };

const noNames: readonly TableName[] = [];

/** Words of the grammar where a table has to follow. Elsewhere a stored function may have the name (seen on MariaDB 11.8). */
const tableFunctions = words('JSON_TABLE LATERAL');

/** Places of a statement, as far as tables are concerned. Only reserved words end a list of tables. */
const elsewhere = 0;
/** A table has to follow, or a parenthesis around some, or a query. */
const awaited = 1;
/** After a name, which may be the schema's. */
const named = 2;
/** After the dot of a schema. */
const dotted = 3;
/** In a list of tables, after one of them: aliases, hints, conditions. A comma or a join leads to the next. */
const listed = 4;

/** Places of a WITH. Its names are not tables, from the end of their definitions to the end of the parenthesis around the WITH. */
const noCte = 0;
const cteAwaited = 1;
const cteNamed = 2;
const cteBegins = 3;
const cteEnded = 4;

/** An open parenthesis is one number: the place, the place of a WITH, and two facts that hold again after it. */
const cteShift = 3;
const queryBit = 64;
const targetBit = 128;

type Cte = { readonly name: string; readonly depth: number };
/** `isRecursive` holds again after the definition: another WITH may be in it. */
type OpenCte = { readonly name: string; readonly isRecursive: boolean };

/** Feed it every token of one statement, then ask for the names. */
export class TableNames {
  readonly #sql: string;
  #names: TableName[] | null = null;
  #isDoubtful = false;
  #state: number = elsewhere;
  #first = '';
  /** The table of INSERT or REPLACE: a parenthesis after it holds columns, and no list of tables follows. */
  #isTarget = false;
  /** This parenthesis holds a SELECT or DELETE: tables follow its FROM. They do not follow a function's FROM. */
  #isQuery = false;
  /** The statement's own verb has been seen. */
  #hasVerb = false;
  #deletes = false;
  /** The USING of a DELETE that names tables has not come yet. Behind a JOIN, columns follow USING. */
  #mayUse = true;
  #shows = false;
  #previous = '';
  /** The open ones; allocated when the first one opens, as the fields below. */
  #parentheses: number[] | null = null;
  #depth = 0;
  #cte: number = noCte;
  #cteName = '';
  #isRecursive = false;
  /** The definitions that are open, the innermost last. */
  #openCtes: OpenCte[] | null = null;
  #ctes: Cte[] | null = null;
  /** The number of open definitions by name: a statement may have thousands. */
  #cteCounts: Map<string, number> | null = null;

  constructor(sql: string) {
    this.#sql = sql;
  }

  /** All names, each as often as the statement has it; null: the names are in doubt. Call it at the end of the statement. */
  finish(): readonly TableName[] | null {
    if (this.#state === named) this.#settle();
    const isWhole = this.#state !== awaited && this.#state !== dotted;
    if (this.#isDoubtful || !isWhole || this.#depth > 0) return null;
    return this.#names ?? noNames;
  }

  /** The word before is the name of a table function: a parenthesis after it is no call. */
  get hasTableFunction(): boolean {
    const isTable = this.#state === named && !this.#isTarget;
    return isTable && tableFunctions.has(this.#first.toUpperCase());
  }

  /** @param word in upper case, if it is unquoted, unqualified, and one of those that show where tables are; otherwise '' */
  seeWord(start: number, end: number, word: string): void {
    if (this.#state === elsewhere && this.#cte === noCte) {
      // Most words.
      if (word !== '') this.#seeTableWord(word);
      this.#previous = word;
      return;
    }
    if (this.#cte !== noCte) this.#seeWordOfCte(start, end, word);
    if (this.#state === named) this.#settle();
    if (this.#state === dotted) this.#add(this.#first, this.#sql.slice(start, end));
    else if (this.#state === awaited) this.#seeAwaited(start, end, word);
    else if (word !== '') this.#seeTableWord(word);
    this.#previous = word;
  }

  seeOther(kind: number, start: number, end: number): void {
    if (kind === tokenKinds.open) this.#open();
    else if (kind === tokenKinds.close) this.#close();
    else if (kind === tokenKinds.dot) this.#dot();
    else if (kind === tokenKinds.quotedName) this.#quoted(start, end);
    else this.#seeRest(kind, start);
    this.#previous = '';
  }

  #seeRest(kind: number, start: number): void {
    const isComma = kind === tokenKinds.operator && this.#sql.charCodeAt(start) === 0x2c;
    if (this.#cte !== noCte) this.#cte = isComma && this.#cte === cteEnded ? cteAwaited : noCte;
    if (this.#state === named) this.#settle();
    if (this.#state === awaited || this.#state === dotted) this.#isDoubtful = true;
    else if (isComma && this.#state === listed) this.#await();
  }

  #await(): void {
    this.#state = awaited;
    this.#isTarget = false;
  }

  #awaitJoined(): void {
    this.#mayUse = false;
    this.#await();
  }

  #seeAwaited(start: number, end: number, word: string): void {
    switch (word) {
      case 'SELECT':
      case 'VALUES':
      case 'WITH':
        this.#state = elsewhere;
        this.#seeTableWord(word);
        return;
      case 'TABLE':
      case 'INTO':
      case 'IGNORE':
      case 'DELAYED':
      case 'LOW_PRIORITY':
      case 'HIGH_PRIORITY':
        return;
      case 'DUAL':
        this.#state = listed;
        return;
      default:
        this.#first = this.#sql.slice(start, end);
        this.#state = named;
    }
  }

  #seeTableWord(word: string): void {
    const isOutermost = this.#depth === 0;
    if (this.#shows && isOutermost) return;
    const previous = this.#previous;
    switch (word) {
      case 'FROM':
        if (this.#isQuery || this.#state === listed) this.#await();
        return;
      case 'JOIN':
        // USE INDEX FOR JOIN (…) is a hint.
        if (previous !== 'FOR') this.#awaitJoined();
        return;
      case 'STRAIGHT_JOIN':
        if (this.#state === listed) this.#awaitJoined();
        return;
      case 'USING':
        if (this.#deletes && isOutermost && this.#mayUse && this.#state === listed)
          this.#awaitJoined();
        return;
      case 'WHERE':
      case 'GROUP':
      case 'HAVING':
      case 'ORDER':
      case 'LIMIT':
      case 'SET':
      case 'UNION':
        if (previous !== 'FOR') this.#state = elsewhere;
        return;
      case 'SELECT':
        if (isOutermost) this.#hasVerb = true;
        this.#state = elsewhere;
        this.#isQuery = true;
        return;
      case 'TABLE':
        if (isOutermost) this.#hasVerb = true;
        this.#await();
        return;
      case 'WITH':
        this.#cte = cteAwaited;
        this.#isRecursive = false;
        return;
      case 'SHOW':
        if (!this.#hasVerb && isOutermost) this.#shows = true;
        return;
      default:
        this.#seeWritingVerb(word, previous, isOutermost);
    }
  }

  #seeWritingVerb(word: string, previous: string, isOutermost: boolean): void {
    switch (word) {
      case 'UPDATE':
        // FOR UPDATE, and ON DUPLICATE KEY UPDATE.
        if (previous === 'FOR' || previous === 'KEY') {
          this.#state = elsewhere;
          return;
        }
        this.#hasVerb = true;
        this.#await();
        return;
      case 'DELETE':
        this.#hasVerb = true;
        this.#deletes = true;
        this.#isQuery = true;
        return;
      case 'INSERT':
      case 'REPLACE':
        // Both are functions as well.
        if (this.#hasVerb || !isOutermost) return;
        this.#hasVerb = true;
        this.#state = awaited;
        this.#isTarget = true;
        return;
      default:
    }
  }

  /** The name is complete, and has no schema. */
  #settle(): void {
    const name = this.#first;
    if (this.#cteCounts?.has(name)) this.#state = listed;
    else this.#add(null, name);
  }

  #add(schema: string | null, name: string): void {
    const found = { schema, name };
    if (this.#names === null) this.#names = [found];
    else this.#names.push(found);
    this.#state = this.#isTarget ? elsewhere : listed;
  }

  #quoted(start: number, end: number): void {
    if (this.#state === named) this.#settle();
    if (this.#cte === cteAwaited) this.#nameCte(this.#unquote(start, end));
    else this.#cte = noCte;
    if (this.#state === awaited) {
      this.#first = this.#unquote(start, end);
      this.#state = named;
    } else if (this.#state === dotted) {
      this.#add(this.#first, this.#unquote(start, end));
    }
  }

  #unquote(start: number, end: number): string {
    const name = this.#sql.slice(start + 1, end - 1);
    return name.includes('`') ? name.replaceAll('``', '`') : name;
  }

  #dot(): void {
    this.#cte = noCte;
    if (this.#state === named) this.#state = dotted;
    else if (this.#state === awaited || this.#state === dotted) this.#isDoubtful = true;
  }

  #open(): void {
    let state: number = elsewhere;
    if (this.#state === named) state = this.#openBehindName();
    else if (this.#state === awaited) {
      if (this.#isTarget) this.#isDoubtful = true;
      state = awaited;
      this.#state = listed;
    } else if (this.#state === dotted) this.#isDoubtful = true;
    this.#openCte();
    this.#depth += 1;
    this.#parentheses ??= [];
    this.#parentheses.push(
      this.#state |
        (this.#cte << cteShift) |
        (this.#isQuery ? queryBit : 0) |
        (this.#isTarget ? targetBit : 0),
    );
    this.#state = state;
    this.#cte = noCte;
    this.#isQuery = false;
    this.#isTarget = false;
  }

  /** Columns after INSERT's table; otherwise a table function: LATERAL (query), JSON_TABLE(…), or an unknown one. */
  #openBehindName(): number {
    if (this.#isTarget) {
      this.#settle();
      return elsewhere;
    }
    if (!this.hasTableFunction) this.#isDoubtful = true;
    this.#state = listed;
    return this.#first.toUpperCase() === 'LATERAL' ? awaited : elsewhere;
  }

  #close(): void {
    if (this.#state === named) this.#settle();
    if (this.#state === awaited || this.#state === dotted) this.#isDoubtful = true;
    const outer = this.#parentheses?.pop();
    if (outer === undefined) {
      this.#isDoubtful = true;
      return;
    }
    this.#depth -= 1;
    this.#state = outer & ((1 << cteShift) - 1);
    this.#cte = (outer >> cteShift) & 7;
    this.#isQuery = (outer & queryBit) !== 0;
    this.#isTarget = (outer & targetBit) !== 0;
    if (this.#ctes !== null) this.#forgetInnerCtes(this.#ctes);
    if (this.#cte === cteEnded) this.#closeCte(this.#openCtes?.pop() as OpenCte);
  }

  #seeWordOfCte(start: number, end: number, word: string): void {
    if (this.#cte === cteAwaited && word === 'RECURSIVE') this.#isRecursive = true;
    else if (this.#cte === cteAwaited) this.#nameCte(this.#sql.slice(start, end));
    else this.#cte = this.#cte === cteNamed && word === 'AS' ? cteBegins : noCte;
  }

  #nameCte(name: string): void {
    this.#cteName = name;
    this.#cte = cteNamed;
  }

  /** The parenthesis after a CTE's name holds its columns, the one after AS its definition. */
  #openCte(): void {
    if (this.#cte === cteBegins) {
      this.#cte = cteEnded;
      this.#openCtes ??= [];
      this.#openCtes.push({ name: this.#cteName, isRecursive: this.#isRecursive });
      if (this.#isRecursive) this.#defineCte(this.#cteName);
    } else if (this.#cte !== cteNamed) this.#cte = noCte;
  }

  #closeCte({ name, isRecursive }: OpenCte): void {
    this.#isRecursive = isRecursive;
    this.#defineCte(name);
  }

  #defineCte(name: string): void {
    this.#ctes ??= [];
    this.#ctes.push({ name, depth: this.#depth });
    this.#cteCounts ??= new Map();
    this.#cteCounts.set(name, (this.#cteCounts.get(name) ?? 0) + 1);
  }

  #forgetInnerCtes(ctes: Cte[]): void {
    for (
      let last = ctes.at(-1);
      last !== undefined && last.depth > this.#depth;
      last = ctes.at(-1)
    ) {
      ctes.pop();
      const count = this.#cteCounts?.get(last.name) ?? 0;
      if (count > 1) this.#cteCounts?.set(last.name, count - 1);
      else this.#cteCounts?.delete(last.name);
    }
  }
}
