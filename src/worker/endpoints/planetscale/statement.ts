// What is sent to MySQL for a driver's text, in which its values stand already. Pure.
import { longFrom } from '../../../shared/pieces.ts';
import { type Analysis, analyse, analyseInPieces } from '../../../shared/sql/analyse.ts';
import { type Asker, workThen } from '../long-requests.ts';
import type { Served } from '../served-sections.ts';
import { type Decided, decideAnalysed, type RunWish } from '../statement.ts';

const wish: RunWish = {
  readOnly: false,
  isSingle: true,
  rollbackOnError: false,
  asksServer: false,
  format: 'planetscale',
};

/** Analyses a driver's text, at once or, if it is long, in pieces, and hands it on. Drivers' sessions never have NO_BACKSLASH_ESCAPES. */
export function analyseThen(
  { served: { context }, response, record }: { readonly served: Served } & Asker,
  sql: string,
  use: (analysis: Analysis) => void,
): void {
  const { builtIns } = context.catalogue();
  if (sql.length <= longFrom) use(analyse(sql, builtIns, 'escaping'));
  else workThen(context, { response, record }, analyseInPieces(sql, builtIns, 'escaping'), use);
}

/** Decides how one statement is run. */
export function decideDriver({ config, context }: Served, analysis: Analysis): Decided {
  return decideAnalysed(config, wish, analysis, context.catalogue());
}
