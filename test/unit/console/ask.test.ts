// The promise of the console's own types: they are what the gateway tells, by the compiler's word. Its linter keeps the two apart.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type {
  RequestsReply as ShownRequests,
  StatementsReply as ShownStatements,
  Stats as ShownStats,
} from '../../../src/console/ask.ts';
import type { StatementList } from '../../../src/shared/observe/statement-sums.ts';
import type { RequestList, Stats } from '../../../src/shared/observe/stats.ts';

/** With every name an ordinary string, and nothing left out: the page shows names that it does not know as well. */
type Widened<Told> = Told extends string
  ? string
  : Told extends object
    ? { readonly [Key in keyof Told]-?: Widened<Told[Key]> }
    : Told;

type IsSame<One, Other> = [Widened<One>, Widened<Other>] extends [Widened<Other>, Widened<One>]
  ? true
  : false;

test('the page takes what the gateway tells, no more and no less', () => {
  // Where they differ, this does not compile.
  const same: readonly [
    IsSame<ShownStats, Stats>,
    IsSame<ShownRequests, RequestList>,
    IsSame<ShownStatements, StatementList>,
  ] = [true, true, true];
  assert.ok(same.every(Boolean));
});
