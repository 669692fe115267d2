// A named statement: a text of SQL with a name, typed parameters, and the clients that may call it. Plain data, which the supervisor
// reads from files and sends to its workers. Numbers and bounds are texts, so that they keep their digits.

/** `one`: one row; `many`: rows; `exec`: a write; `batch`: several statements in one transaction. */
export type StatementKind = 'one' | 'many' | 'exec' | 'batch';

export const statementKinds: readonly StatementKind[] = ['one', 'many', 'exec', 'batch'];

/** The argument of an agent's call that has the idempotency key, beside the parameters: no parameter of a write has its name. */
export const keyArgument = 'idempotency_key';

/** One statement of a file. */
export type NamedStatement = {
  readonly name: string;
  readonly kind: StatementKind;
  /** The file's name without its directory, and the line of the head, from 1. */
  readonly file: string;
  readonly line: number;
  /** Its lines are separated by line feeds; '' if there is none. */
  readonly description: string;
  /** The clients that may call it; null: every client with the permission `named`. */
  readonly for: readonly string[] | null;
  /** In the order of the file. */
  readonly parameters: readonly Parameter[];
  /** One, except in a batch. */
  readonly parts: readonly Part[];
  /** Whether it applies nothing, by its text: only then may a GET call it. */
  readonly isRead: boolean;
  readonly isKeyRequired: boolean;
  /** For how long a reply may be cached; null: not at all. */
  readonly maxAgeS: number | null;
  /** Errors of MySQL that get a status and a code of the application's. */
  readonly errors: readonly MappedError[];
  /** The application's codes for expectations that fail. */
  readonly refusals: readonly MappedRefusal[];
  /** Columns of the answer that are never NULL, whatever the server says. */
  readonly notNullColumns: readonly string[];
};

/** One SQL statement of a named statement. */
export type Part = {
  /** As in the file, from its first token to its last, with comments and without the semicolon. */
  readonly sql: string;
  /** The line of its first token. */
  readonly line: number;
  /** In the order of the text. */
  readonly placeholders: readonly Placeholder[];
  /** The name of its result among the steps of the reply; null: it has none. */
  readonly step: string | null;
  readonly expect: Expect | null;
  /** Whether its rows are the reply. Exactly one part has it. */
  readonly isAnswer: boolean;
};

/** The place of a parameter in the SQL of its part, in UTF-16 units, the colon included. */
export type Placeholder = { readonly name: string; readonly start: number; readonly end: number };

/** How many rows a statement must touch or return. */
export type Expect = {
  readonly of: 'affected_rows' | 'row_count';
  readonly bounds:
    | { readonly kind: 'range'; readonly min: number; readonly max: number }
    /** As many as the parameter, a list or records, has items. */
    | { readonly kind: 'count'; readonly parameter: string };
  /** The application's code if it fails; null: the gateway's. */
  readonly code: string | null;
};

/** An error of MySQL, by number. `text` is for people; '' if the file has none. */
export type MappedError = MappedRefusal & { readonly errno: number };

export type MappedRefusal = {
  readonly code: string;
  readonly status: number;
  readonly text: string;
};

export type Parameter = {
  readonly name: string;
  readonly type: ParameterType;
  readonly fallback: Fallback;
  readonly line: number;
};

/** The value of a parameter that the request does not have. */
export type Fallback =
  | { readonly kind: 'required' }
  /** NULL. Only such a parameter may be null in a request, too. */
  | { readonly kind: 'null' }
  /** The value as a query string would have it. */
  | { readonly kind: 'value'; readonly text: string }
  /** A claim of the caller's, always: a request must not have the parameter. Each segment is the name of a member. */
  | { readonly kind: 'claim'; readonly path: readonly string[] };

export type ParameterType = ScalarType | ChoiceType | ListType | RecordsType;

/** Both included. Null: there is no bound. */
export type Range = { readonly min: string | null; readonly max: string | null };

export type ScalarType =
  | { readonly kind: 'int'; readonly range: Range }
  | {
      readonly kind: 'decimal';
      readonly precision: number;
      readonly scale: number;
      readonly range: Range;
    }
  | { readonly kind: 'float'; readonly range: Range }
  | { readonly kind: 'bool' }
  /** `pattern` is RE2's, and matches the whole value; null: every text. The length is in characters (code points). */
  | { readonly kind: 'text'; readonly pattern: string | null; readonly maxCharacters: number }
  | { readonly kind: 'date'; readonly range: Range }
  | { readonly kind: 'datetime'; readonly range: Range }
  | { readonly kind: 'time'; readonly range: Range }
  | { readonly kind: 'json' }
  | { readonly kind: 'bytes' }
  | { readonly kind: 'uuid' }
  | { readonly kind: 'enum'; readonly values: readonly string[] }
  /** The values of an ENUM column, which the catalogue knows. */
  | { readonly kind: 'enum of'; readonly table: string; readonly column: string };

/** The request sends a label, and the SQL of the file takes the place of the parameter. */
export type ChoiceType = {
  readonly kind: 'choice';
  readonly choices: readonly { readonly label: string; readonly sql: string }[];
};

/** For `IN (:list)`. It has at least one item. */
export type ListType = {
  readonly kind: 'list';
  readonly of: ParameterType;
  readonly maxItems: number;
};

/** Objects, bound as the text of a JSON array. */
export type RecordsType = {
  readonly kind: 'records';
  readonly fields: readonly Field[];
  readonly maxItems: number;
};

export type Field = { readonly name: string; readonly type: ParameterType };

/** The part of a statement that other files depend on, and that a faulty file has too: its name is taken, and its clients must exist. */
export type NamedHead = Pick<NamedStatement, 'name' | 'file' | 'line' | 'for'>;

/** One fault of a file, for people. `line` counts from 1; null: it belongs to no line. */
export type NamedFault = {
  readonly file: string;
  readonly line: number | null;
  readonly problem: string;
};
