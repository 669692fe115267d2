// Decodes what a client asks of /v1/query into one checked shape.
import type { Parameters } from '../../../shared/sql/bind.ts';
import type { V1Layout } from '../../encode/formats/v1-heads.ts';
import { refuse } from '../../failure/failure.ts';
import {
  type Decoded,
  decodeFields,
  type FieldCheck,
  isBoolean,
  isCount,
  isDuration,
  isParameters,
  isText,
} from '../fields.ts';
import type { ParsedObject } from '../json-text.ts';
import type { SectionNames } from '../sections.ts';
import { layoutChecks, layoutOf } from './layout.ts';

/** A request whose every field has the right type. */
export type QueryRequest = {
  /** Null: it names none. */
  readonly section: string | null;
  readonly sql: string;
  /** Numbers are LosslessNumbers where a JavaScript number would lose digits. */
  readonly params: Parameters;
  /** As asked for; the caller limits it to its own. */
  readonly timeoutMs: number | null;
  readonly readOnly: boolean;
  /** As asked for; the caller limits it to its own. */
  readonly maxRows: number | null;
  readonly layout: V1Layout;
  /** How many rows a write may touch; null: all. */
  readonly maxAffected: number | null;
  /** Whether all is undone at the end. */
  readonly isDryRun: boolean;
  /** Whether the reply lists the server's warnings. */
  readonly showWarnings: boolean;
  /** The token of the transaction that it runs in; null: in none. */
  readonly transaction: string | null;
};

const checks: ReadonlyMap<string, FieldCheck> = new Map<string, FieldCheck>([
  ['sql', isText],
  ['params', isParameters],
  ['timeout_ms', isDuration],
  ['read_only', isBoolean],
  ['max_rows', isCount],
  ['max_affected', isCount],
  ['dry_run', isBoolean],
  ['show_warnings', isBoolean],
  ...layoutChecks,
  ['section', isText],
  ['transaction', isText],
]);

/** The names of the fields that are taken. */
export const queryFields: readonly string[] = [...checks.keys()];

/** `sections` is what the field `section` may say. Never throws. */
export function decodeQuery(parsed: ParsedObject, sections: SectionNames): Decoded<QueryRequest> {
  const decoded = decodeFields(parsed, sections, checks);
  if (!decoded.ok) return decoded;
  const { fields, exact } = decoded;
  const sql = (fields.sql as string | undefined) ?? '';
  if (sql.trim() === '') return refuse('NO_SQL', 'sql is missing, or empty');
  return {
    ok: true,
    exact,
    request: {
      section: (fields.section as string | undefined) ?? null,
      sql,
      params: fields.params === undefined ? [] : (exact().params as Parameters),
      timeoutMs: (fields.timeout_ms as number | undefined) ?? null,
      readOnly: fields.read_only === true,
      maxRows: (fields.max_rows as number | undefined) ?? null,
      layout: layoutOf(fields),
      maxAffected: (fields.max_affected as number | undefined) ?? null,
      isDryRun: fields.dry_run === true,
      showWarnings: fields.show_warnings === true,
      transaction: (fields.transaction as string | undefined) ?? null,
    },
  };
}
