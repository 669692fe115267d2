// Decides on a call of a named statement: checks its values, writes its SQL, and says how it runs. Pure.
import type { Caller } from '../../../shared/clients/caller.ts';
import {
  type CalledExpect,
  type CalledPart,
  checkCall,
  type GivenValues,
  writeCall,
} from '../../../shared/named/call.ts';
import { claimsOf, type OwnClaims } from '../../../shared/named/own-claims.ts';
import type { NamedStatement } from '../../../shared/named/statement.ts';
import type { Pieces } from '../../../shared/pieces.ts';
import { whyNotInTransaction } from '../../../shared/sql/transactions.ts';
import type { OpenStep, Work } from '../../execution/executor.ts';
import type { AnalysedStatement, BatchKey, BatchStep, Expectation } from '../../execution/work.ts';
import { type AnyFailure, type Failure, type Refused, refuse } from '../../failure/failure.ts';
import { batchOf, createStep, decideSingle } from '../batch-step.ts';
import type { SqlSection } from '../sections.ts';
import { decideAnalysed, notInTransaction } from '../statement.ts';
import { callTooLarge, keyRequired, refusedCall, withOwnCode } from './failures.ts';
import type { NamedEntry } from './statements.ts';

/** A call of a statement that its caller may call. */
export type NamedCall = {
  readonly entry: NamedEntry;
  /** The section of the statement, with the client's limits. */
  readonly section: SqlSection;
  readonly caller: Caller;
  readonly given: GivenValues;
  /** Whether it must only read: the server runs it READ ONLY. */
  readonly readOnly: boolean;
  /** All that the body of the reply depends on, beside the statement and the settings; null: the reply is not shared. */
  readonly format: string | null;
  /** Whether the reply lists the server's warnings; missing: it does not. */
  readonly showsWarnings?: boolean;
};

/** A named statement whose values are in its SQL. */
export type WrittenStatement = {
  readonly ok: true;
  /** One for each part. */
  readonly parts: readonly WrittenPart[];
  /** To be appended to the caller's owner wherever something belongs to it. */
  readonly claims: string;
  /** The claims that were bound, one by one. */
  readonly ownClaims: OwnClaims;
};

type WrittenPart = {
  readonly statement: AnalysedStatement;
  readonly expect: Expectation | null;
};

/** Checks the values of a call and writes its SQL. */
export function* writeNamed(named: NamedCall): Pieces<WrittenStatement | Refused> {
  const { entry, section, caller, given, readOnly } = named;
  const { callable, statement } = entry;
  const { config, context } = section;
  const checked = yield* checkCall(callable, given, caller.claims);
  if (!checked.ok) return { ok: false, failure: refusedCall(checked.refusal) };
  const { values, claims } = checked;
  const catalogue = context.catalogue();
  const maxBytes = context.maxStatementBytes();
  const written = yield* writeCall(callable, values, maxBytes, catalogue.builtIns);
  if (!written.ok) return { ok: false, failure: callTooLarge };
  const owning = claims === '' ? caller : { ...caller, owner: `${caller.owner}${claims}` };
  const parts: WrittenPart[] = [];
  for (const part of written.parts) {
    const wish = {
      caller: owning,
      readOnly,
      isSingle: true,
      needsEffect: false,
      rollbackOnError: false,
      asksServer: false,
      showsWarnings: named.showsWarnings === true,
      format: named.format,
    };
    const decided = decideAnalysed(config, wish, part.analysis, catalogue);
    if (!decided.ok) return decided;
    parts.push({ statement: decided.statement, expect: expectOf(statement, part) });
  }
  return { ok: true, parts, claims, ownClaims: claimsOf(statement, caller.claims) };
}

/** A `:one` that runs in a batch is undone unless it has exactly one row. */
function expectOf({ kind }: NamedStatement, { expect }: CalledPart): Expectation | null {
  if (kind === 'one') return { of: 'row_count', min: 1, max: 1, code: 'NOT_ONE_ROW' };
  return expect === null ? null : unlessMet(expect);
}

function unlessMet({ of, min, max }: CalledExpect): Expectation {
  return { of, min, max, code: 'EXPECTATION_FAILED' };
}

/** The key and the transaction of a call. */
export type NamedPlace = {
  /** Makes the key of the owner's request; null: the request has none. */
  readonly keyFor: ((owner: string) => Pieces<KeyOfCall>) | null;
  /** Runs a statement in the transaction that the client holds; null: it holds none. */
  readonly held: HeldPlace | null;
};

/** The key of a call, or why it may have none. */
export type KeyOfCall = { readonly ok: true; readonly key: BatchKey } | Refused;

/** A transaction that a client holds. */
export type HeldPlace = {
  readonly run: (statement: AnalysedStatement) => OpenStep;
  /** Binds it to the claims of its calls. False: it is another user's. */
  readonly claim: (claims: OwnClaims) => Failure | null;
};

/** The work of a call, and the meaning of its failures; or why nothing runs. */
export type DecidedNamed =
  | {
      readonly ok: true;
      readonly work: Work;
      readonly explain: (failure: AnyFailure) => AnyFailure;
      readonly ownClaims: OwnClaims;
    }
  | Refused;

/** Decides on a call: the one way in which named statements run, for every door. */
export function* decideNamed(call: NamedCall, { keyFor, held }: NamedPlace): Pieces<DecidedNamed> {
  const { statement } = call.entry;
  if (statement.isKeyRequired && keyFor === null) return { ok: false, failure: keyRequired };
  const written = yield* writeNamed(call);
  if (!written.ok) return written;
  const { ownClaims } = written;
  const decided =
    held === null
      ? decideAlone(call, written, keyFor !== null)
      : decideHeld(statement, written, held);
  if (!decided.ok) return decided;
  let { work } = decided;
  if (keyFor !== null && work.kind === 'batch') {
    const keyed = yield* keyFor(`${call.caller.owner}${written.claims}`);
    if (!keyed.ok) return keyed;
    work = { ...work, key: keyed.key };
  }
  const explain = (failure: AnyFailure) => withOwnCode(failure, (part) => ({ statement, part }));
  return { ok: true, work, explain, ownClaims };
}

type DecidedWork = { readonly ok: true; readonly work: Work } | Refused;

const readsOnly = refuse(
  'IDEMPOTENCY_UNFIT',
  'Idempotency-Key is not allowed here: the statement only reads.',
);

function decideAlone(
  { entry: { statement }, section: { config }, readOnly }: NamedCall,
  { parts }: WrittenStatement,
  hasKey: boolean,
): DecidedWork {
  const [first] = parts;
  if (first === undefined) throw new Error('a named statement has a part');
  if (hasKey && statement.isRead) return readsOnly;
  if (statement.kind === 'batch') {
    const isReadOnly = readOnly || config.readOnly;
    return { ok: true, work: batchOf(stepsOf(parts), { isReadOnly, maxRetries: usualRetries }) };
  }
  // The format counts the rows of a read, which has nothing to undo.
  const expect = statement.isRead ? null : first.expect;
  if (!hasKey && expect === null) return { ok: true, work: first.statement };
  const decided = decideSingle(first.statement, expect);
  return decided.ok ? { ok: true, work: decided.batch } : decided;
}

/** How often a batch runs again after a deadlock, as in /v1/batch. */
const usualRetries = 3;

/** The steps of a batch: the parser has checked that they may be some. */
export function stepsOf(parts: WrittenStatement['parts']): readonly BatchStep[] {
  return parts.map(({ statement, expect }) => createStep(statement, expect));
}

const isTransaction = refuse(
  'NOT_IN_TRANSACTION',
  'A :batch, and a statement with -- expect, are transactions of their own: they are not allowed in one that the client holds.',
);

function decideHeld(
  { kind, isRead }: NamedStatement,
  { parts, ownClaims }: WrittenStatement,
  held: HeldPlace,
): DecidedWork {
  const [first] = parts;
  const isAlone = kind === 'batch' || (kind === 'exec' && first?.expect !== null);
  if (first === undefined || isAlone || (kind === 'one' && !isRead)) return isTransaction;
  const foreign = held.claim(ownClaims);
  if (foreign !== null) return { ok: false, failure: foreign };
  const work = held.run(first.statement);
  const whyNot = whyNotInTransaction(first.statement.analysis, work.isReadOnly);
  return whyNot === null ? { ok: true, work } : notInTransaction(whyNot);
}
