// One reading of a gauge.

/** One reading. `note`: what a reader must know of it. */
export type Reading = { readonly value: number; readonly errors: number; readonly note: string };
