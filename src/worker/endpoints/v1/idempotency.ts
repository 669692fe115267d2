// The Idempotency-Key of a request: whether it may have one, and the hash of the request that it identifies. Pure.
import { hash } from 'node:crypto';
import { isLosslessNumber } from 'lossless-json';
import { type Caller, defaultCaller } from '../../../shared/clients/caller.ts';
import type { Config } from '../../../shared/config/config.ts';
import { type Pieces, stepsInPiece } from '../../../shared/pieces.ts';
import type { IdempotencyKey } from '../../execution/idempotency/key-store.ts';
import type { Batch } from '../../execution/work.ts';
import { type Failure, type Refused, refusal, refuse } from '../../failure/failure.ts';
import { type Fields, present } from '../fields.ts';

const off = refuse(
  'IDEMPOTENCY_OFF',
  'Idempotency-Key is not available: idempotency_table is not set for this section.',
);

const malformed = refusal(
  'IDEMPOTENCY_KEY',
  'Idempotency-Key must be 1 to 255 visible characters, once.',
);

const unfit = (reason: string): Refused =>
  refuse('IDEMPOTENCY_UNFIT', `Idempotency-Key is not allowed here: ${reason}.`);

const visible = /^[\x21-\x7e]{1,255}$/;

/** Whether a value can be a key. */
export function isKey(value: unknown): value is string {
  return typeof value === 'string' && visible.test(value);
}

/**
 * The fault of a request's key, before its body is read; null: none. Node joins several keys by a comma and a blank, and a blank is no
 * visible character.
 * @param isTaken whether any section takes keys
 */
export function checkKey(header: string | undefined, isTaken: boolean): Failure | null {
  if (header === undefined) return null;
  if (!isTaken) return off.failure;
  return isKey(header) ? null : malformed;
}

/** A request as far as it decides, beside its body, whether another one is the same. */
export type KeyedCall = {
  readonly record: { readonly caller: Pick<Caller, 'owner'> };
  readonly request: { readonly method?: string | undefined };
  readonly head: { readonly path: string };
};

/** Fields that do not make another request. */
const insignificant: ReadonlySet<string> = new Set(['timeout_ms', 'retry']);

/** The key of a request and the hash of the request. Null: it has no key. */
export type DecidedKey = { readonly ok: true; readonly key: IdempotencyKey | null } | Refused;

/** The key of a request without the header. */
export const noKey: DecidedKey = { ok: true, key: null };

/**
 * Hashes a key that `checkKey` has let pass, unless the section takes none. Two sections may use the same table, and each owner has its own
 * keys. Those of the client `default` are hashed as before there were clients.
 */
export function* keyOf(
  { section, idempotencyTable }: Pick<Config, 'section' | 'idempotencyTable'>,
  header: string,
  { request, head, record }: KeyedCall,
  { exact }: { readonly exact: () => Fields },
): Pieces<DecidedKey> {
  if (idempotencyTable === null) return off;
  const text = yield* canonical(wantedOf(exact()), { left: stepsInPiece });
  const { method = '' } = request;
  const { owner } = record.caller;
  const owned = owner === defaultCaller.owner ? [] : [owner];
  return {
    ok: true,
    key: { id: hashAll([section, header, ...owned]), request: hashAll([method, head.path, text]) },
  };
}

function wantedOf(fields: Fields): object {
  const wanted = Object.entries(present(fields))
    .filter(([name]) => !insignificant.has(name))
    .map(([name, value]) => [name, name === 'statements' ? presentInEach(value) : value]);
  return Object.fromEntries(wanted);
}

/** A field that is null is as good as absent, in a statement and in what it expects too; a parameter is not. */
function presentInEach(statements: unknown): unknown {
  return (statements as readonly Fields[]).map((statement) => {
    const { expect, ...fields } = present(statement) as Fields & { expect?: Fields };
    return expect === undefined ? fields : { ...fields, expect: presentIn(expect) };
  });
}

function presentIn(expect: Fields): Fields {
  const bounds = Object.entries(present(expect)).map(([of, bound]) => [
    of,
    typeof bound === 'object' && !isLosslessNumber(bound) ? present(bound as Fields) : bound,
  ]);
  return Object.fromEntries(bounds);
}

/** The length of each text is hashed with it, so that no two lists of texts have the same hash. */
function hashAll(texts: readonly string[]): string {
  let all = '';
  for (const text of texts) all += `${Buffer.byteLength(text)}:${text}`;
  return hash('sha256', all);
}

/** JSON with the members of each object in one order; numbers by their digits. @param steps how many values are left in this piece */
function* canonical(value: object, steps: { left: number }): Pieces<string> {
  const names = Array.isArray(value) ? null : Object.keys(value).sort();
  const members: readonly unknown[] =
    names?.map((name) => (value as Fields)[name]) ?? (value as []);
  const texts: string[] = [];
  for (const member of members) {
    steps.left -= 1;
    if (steps.left <= 0) {
      steps.left = stepsInPiece;
      yield;
    }
    const text = isLeaf(member) ? leafText(member) : yield* canonical(member as object, steps);
    const name = names?.[texts.length];
    texts.push(name === undefined ? text : `${JSON.stringify(name)}:${text}`);
  }
  return names === null ? `[${texts.join()}]` : `{${texts.join()}}`;
}

function isLeaf(value: unknown): boolean {
  return typeof value !== 'object' || value === null || isLosslessNumber(value);
}

function leafText(value: unknown): string {
  return isLosslessNumber(value) ? value.toString() : JSON.stringify(value);
}

/** Why a batch may not have a key; null: it may. */
export function whyUnfit({ isAtomic, isReadOnly, isDryRun }: Batch): Refused | null {
  if (!isAtomic) return unfit('atomic is false');
  if (isReadOnly) return unfit('the request only reads');
  return isDryRun ? unfit('a dry run leaves nothing') : null;
}

/** The failure of a request that has a key and only reads. */
export const onlyReads = unfit('the request only reads');
