// The effects of a statement beyond its text, as far as the catalogue knows the tables that it names.
import type { Classification } from '../../shared/sql/analyse.ts';
import type { TableName } from '../../shared/sql/table-names.ts';
import { builtInEverywhere } from '../../shared/sql/vocabulary.ts';
import type { Catalogue } from '../servers/catalogue/catalogue.ts';

/** The part of a catalogue that statements need. */
export type Known = Pick<
  Catalogue,
  'builtIns' | 'objects' | 'changeBegins' | 'changeEnds' | 'missed'
>;

type Named = Pick<
  Classification,
  'kind' | 'tables' | 'hasUnknownCall' | 'confinedTo' | 'mayChangeObjects'
>;

/** Ask it whenever it matters: the catalogue may change while a statement waits or runs. */
export class StatementEffects {
  readonly #catalogue: Known;
  readonly #named: Named;

  constructor(catalogue: Known, named: Named) {
    this.#catalogue = catalogue;
    this.#named = named;
  }

  /** The tables that it names; null: that is not known. */
  get tables(): readonly TableName[] | null {
    return this.#named.tables;
  }

  /** Whether it calls something that is not known to be built in. */
  get hasUnknownCall(): boolean {
    return this.#named.hasUnknownCall;
  }

  /** The tables that it names, if it changes only their rows, and what their triggers and views lead to; null: that is not known. */
  get confinedTo(): readonly TableName[] | null {
    return this.#named.confinedTo;
  }

  /** Whether a ROLLBACK is known to undo all that it does, also one by a server that has lost the connection. */
  isUndoable(): boolean {
    const { confinedTo, kind } = this.#named;
    if (confinedTo === null || confinedTo.length === 0) return confinedTo !== null;
    const { objects } = this.#catalogue;
    if (kind === 'read') return objects?.effectsOfReading(confinedTo).isHarmless === true;
    return objects?.undoesWrites(confinedTo) === true;
  }

  /**
   * Whether all that it names is known to do nothing beside what the text says: it changes no data, leaves nothing in the session,
   * and reads nothing that was left there.
   */
  isHarmless(): boolean {
    const { tables, kind } = this.#named;
    if (tables === null || tables.length === 0) return tables !== null;
    const { objects } = this.#catalogue;
    if (objects === null) return false;
    const effects =
      kind === 'read' ? objects.effectsOfReading(tables) : objects.effectsOfWriting(tables);
    if (!effects.isHarmless && !objects.holds(tables)) this.#catalogue.missed();
    return effects.isHarmless;
  }

  /** Whether the same tables, unchanged, give the same answer. */
  isRepeatable(): boolean {
    const { tables } = this.#named;
    if (tables === null || tables.length === 0) return tables !== null;
    return this.#catalogue.objects?.effectsOfReading(tables).isRepeatable ?? false;
  }

  /** To be called before the statement is sent. */
  sent(): void {
    if (this.#named.mayChangeObjects) this.#catalogue.changeBegins();
  }

  /**
   * To be called when the statement has ended.
   * @param isCertain it was answered; otherwise it may go on for as long as a KILL takes
   */
  ended(isCertain: boolean): void {
    if (this.#named.mayChangeObjects) this.#catalogue.changeEnds(isCertain);
  }
}

/** Those of a statement that names no table and changes none. */
export const noEffects = new StatementEffects(
  {
    builtIns: builtInEverywhere,
    objects: null,
    changeBegins: () => {},
    changeEnds: () => {},
    missed: () => {},
  },
  { kind: 'read', tables: [], hasUnknownCall: false, confinedTo: [], mayChangeObjects: false },
);
