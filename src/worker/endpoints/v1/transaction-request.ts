// Decodes what a client asks of /v1/transaction and the two below it into one checked shape each.
import { type Isolation, isolationLevels } from '../../../shared/sql/transactions.ts';
import { refuse } from '../../failure/failure.ts';
import {
  type Decoded,
  decodeFields,
  type FieldCheck,
  isBoolean,
  isDuration,
  isOneOf,
  isText,
} from '../fields.ts';
import type { ParsedObject } from '../json-text.ts';
import type { SectionNames } from '../sections.ts';

/** The characteristics of a new transaction. */
export type BeginRequest = {
  /** Null: it names none. */
  readonly section: string | null;
  /** Null: the session's. */
  readonly isolation: Isolation | null;
  readonly readOnly: boolean;
  /** As asked for; the caller limits it to its own. */
  readonly timeoutMs: number | null;
};

/** Which transaction is to end. */
export type EndRequest = {
  /** Null: it names none. */
  readonly section: string | null;
  readonly transaction: string;
  /** As asked for; the caller limits it to its own. */
  readonly timeoutMs: number | null;
};

const usual: readonly (readonly [string, FieldCheck])[] = [
  ['timeout_ms', isDuration],
  ['section', isText],
];

const beginChecks: ReadonlyMap<string, FieldCheck> = new Map([
  ['isolation', isOneOf(...isolationLevels)],
  ['read_only', isBoolean],
  ...usual,
]);

const endChecks: ReadonlyMap<string, FieldCheck> = new Map([['transaction', isText], ...usual]);

/** The names of the fields that are taken. */
export const beginFields: readonly string[] = [...beginChecks.keys()];
export const endFields: readonly string[] = [...endChecks.keys()];

/** `sections` is what the field `section` may say. Never throws. */
export function decodeBegin(parsed: ParsedObject, sections: SectionNames): Decoded<BeginRequest> {
  const decoded = decodeFields(parsed, sections, beginChecks);
  if (!decoded.ok) return decoded;
  const { section, isolation, read_only, timeout_ms } = decoded.fields;
  return {
    ok: true,
    exact: decoded.exact,
    request: {
      section: (section as string | undefined) ?? null,
      isolation: (isolation as Isolation | undefined) ?? null,
      readOnly: read_only === true,
      timeoutMs: (timeout_ms as number | undefined) ?? null,
    },
  };
}

/** The same for COMMIT and ROLLBACK. */
export function decodeEnd(parsed: ParsedObject, sections: SectionNames): Decoded<EndRequest> {
  const decoded = decodeFields(parsed, sections, endChecks);
  if (!decoded.ok) return decoded;
  const { section, transaction, timeout_ms } = decoded.fields;
  if (typeof transaction !== 'string') {
    return refuse('BAD_KEY', 'transaction is missing');
  }
  return {
    ok: true,
    exact: decoded.exact,
    request: {
      section: (section as string | undefined) ?? null,
      transaction,
      timeoutMs: (timeout_ms as number | undefined) ?? null,
    },
  };
}
