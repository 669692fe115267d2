// The promise of the console's own types: the compiler finds them equal to what the gateway sends. The linter keeps the two apart.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type {
  RequestsReply as ShownRequests,
  StatementsReply as ShownStatements,
  Stats as ShownStats,
} from '../../../src/console/ask.ts';
import type { StatementList } from '../../../src/shared/observe/statement-sums.ts';
import type { RequestList, Stats } from '../../../src/shared/observe/stats.ts';

/** Every name is an ordinary string, and nothing is left out: the page also shows names that it does not know. */
type Widened<Reported> = Reported extends string
  ? string
  : Reported extends object
    ? { readonly [Key in keyof Reported]-?: Widened<Reported[Key]> }
    : Reported;

type IsSame<One, Other> = [Widened<One>, Widened<Other>] extends [Widened<Other>, Widened<One>]
  ? true
  : false;

test('the page takes what the gateway sends, no more and no less', () => {
  // If they differ, this does not compile.
  const same: readonly [
    IsSame<ShownStats, Stats>,
    IsSame<ShownRequests, RequestList>,
    IsSame<ShownStatements, StatementList>,
  ] = [true, true, true];
  assert.ok(same.every(Boolean));
});
