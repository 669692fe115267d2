// Decides on a question about tables: their list from the worker's catalogue, and one table with all that the server knows of it.
import type { Caller } from '../../../shared/clients/caller.ts';
import { findNearest } from '../../../shared/nearest-name.ts';
import type { Pieces } from '../../../shared/pieces.ts';
import type { Parameters } from '../../../shared/sql/bind.ts';
import { createV1Heads } from '../../encode/formats/v1-heads.ts';
import { chooseV1Json } from '../../encode/formats/v1-json.ts';
import type { ResultHeads } from '../../encode/result-rows.ts';
import { refuse } from '../../failure/failure.ts';
import type { HandedDecision, Rendered } from '../handed-over.ts';
import type { SqlSection } from '../sections.ts';
import { decideStatement } from '../statement.ts';
import { describeTable, describeTables, tableSql, tablesSql } from './table-facts.ts';

/** More tables than any database has in practice: the limit of bytes decides what is shown. */
const maxListedTables = 100_000;

/** A question. */
export type TableQuestion = {
  readonly section: SqlSection;
  readonly caller: Caller;
  readonly requestId: string;
  /** The name of one table; null: all are listed. */
  readonly table: string | null;
  /** A part of the names of listed tables; null: all. */
  readonly filter: string | null;
  /** The sections that a list names beside its tables; null: none. */
  readonly sections: readonly string[] | null;
  /** The limit on the answer. */
  readonly maxBytes: number;
  readonly timeoutMs: number;
  /** The code of the failure if there is no such table. */
  readonly missing: 'BAD_KEY' | 'NOT_FOUND';
};

/** Decides on questions of one worker. */
export class TableQuestions {
  /** Numbers as they come, and JSON as text. */
  readonly #heads: ResultHeads = createV1Heads({ rows: 'array', numbers: 'raw', json: 'string' });

  *decide(question: TableQuestion): Pieces<HandedDecision> {
    const { section, table, filter, sections, maxBytes, missing } = question;
    const { objects } = section.context.catalogue();
    if (table !== null) {
      const known = objects?.ownTables().map((one) => one.name) ?? [];
      return yield* this.#ask(question, tableSql, { table }, (rows) => {
        const json = describeTable(rows, maxBytes);
        return json === null ? noTable(missing, table, known) : { ok: true, json };
      });
    }
    if (objects !== null) {
      const json = describeTables(objects.ownTables(), filter, maxBytes, sections);
      return { ok: true, kind: 'reply', json };
    }
    return yield* this.#ask(question, tablesSql, [], (rows) => {
      const tables = rows.map(([name, isView]) => ({ name: String(name), isView: isView === 1 }));
      return { ok: true, json: describeTables(tables, filter, maxBytes, sections) };
    });
  }

  /** Has the server answer. @param make makes the answer of the rows */
  *#ask(
    { section, caller, requestId, timeoutMs }: TableQuestion,
    sql: string,
    params: Parameters,
    make: (rows: readonly (readonly unknown[])[]) => Rendered,
  ): Pieces<HandedDecision> {
    const { config, context } = section;
    const wish = {
      caller,
      sql,
      params,
      paramsKey: 'params',
      readOnly: true,
      isSingle: true,
      needsEffect: true,
      rollbackOnError: false,
      asksServer: false,
      showsWarnings: false,
      format: null,
    } as const;
    const maxBytes = context.maxStatementBytes();
    const decided = yield* decideStatement(config, wish, maxBytes, context.catalogue());
    if (!decided.ok) return decided;
    const format = chooseV1Json({
      heads: this.#heads,
      section: context.sectionJson,
      requestId,
      rowModule: null,
      maxRows: maxListedTables,
      maxResultBytes: config.maxResultBytes,
      isDryRun: false,
      isKept: false,
    });
    return {
      ok: true,
      kind: 'run',
      run: {
        ok: true,
        kind: 'run',
        section,
        work: decided.statement,
        timeoutMs,
        format,
        ignoresToken: true,
      },
      render: (body) => make((JSON.parse(body) as { rows: (readonly unknown[])[] }).rows),
    };
  }
}

function noTable(code: TableQuestion['missing'], name: string, known: readonly string[]) {
  const near = findNearest(name, known);
  const hint = near === null ? '' : ` Did you mean ${JSON.stringify(near)}?`;
  return refuse(code, `table: there is no such table or view here.${hint}`);
}
