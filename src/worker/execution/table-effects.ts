// The effects of a statement as the catalogue knows them at the moment when somebody asks.
// Must not know what follows from them.

import type { Classification } from '../../shared/sql/analyse.ts';
import type { TableName } from '../../shared/sql/table-names.ts';
import type { Catalogue } from '../servers/catalogue/catalogue.ts';
import type { StatementEffects } from './statement-effects.ts';

/** What is asked of a catalogue, and what it is told. */
export type Known = Pick<
  Catalogue,
  'builtIns' | 'objects' | 'changeBegins' | 'changeEnds' | 'missed'
>;

type Named = Pick<
  Classification,
  'kind' | 'tables' | 'hasUnknownCall' | 'confinedTo' | 'mayChangeObjects'
>;

/** A statement's tables, and whom to ask about them. */
export class TableEffects implements StatementEffects {
  readonly #catalogue: Known;
  readonly #named: Named;

  constructor(catalogue: Known, named: Named) {
    this.#catalogue = catalogue;
    this.#named = named;
  }

  get tables(): readonly TableName[] | null {
    return this.#named.tables;
  }

  get hasUnknownCall(): boolean {
    return this.#named.hasUnknownCall;
  }

  get confinedTo(): readonly TableName[] | null {
    return this.#named.confinedTo;
  }

  isUndoable(): boolean {
    const { confinedTo, kind } = this.#named;
    if (confinedTo === null || confinedTo.length === 0) return confinedTo !== null;
    const { objects } = this.#catalogue;
    if (kind === 'read') return objects?.effectsOfReading(confinedTo).isHarmless === true;
    return objects?.undoesWrites(confinedTo) === true;
  }

  isHarmless(): boolean {
    const { tables, kind } = this.#named;
    if (tables === null || tables.length === 0) return tables !== null;
    const objects = this.#catalogue.objects;
    if (objects === null) return false;
    const effects =
      kind === 'read' ? objects.effectsOfReading(tables) : objects.effectsOfWriting(tables);
    if (!effects.isHarmless && !objects.holds(tables)) this.#catalogue.missed();
    return effects.isHarmless;
  }

  isRepeatable(): boolean {
    const { tables } = this.#named;
    if (tables === null || tables.length === 0) return tables !== null;
    return this.#catalogue.objects?.effectsOfReading(tables).isRepeatable ?? false;
  }

  sent(): void {
    if (this.#named.mayChangeObjects) this.#catalogue.changeBegins();
  }

  ended(isCertain: boolean): void {
    if (this.#named.mayChangeObjects) this.#catalogue.changeEnds(isCertain);
  }
}
