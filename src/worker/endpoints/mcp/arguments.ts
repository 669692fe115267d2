// The arguments of a tool: which there are, and what is wrong with those of a call.
import { type Refused, refuse } from '../../failure/failure.ts';
import { type FieldCheck, type Fields, findFault, isText, present } from '../fields.ts';
import { type SqlSection, type UsableSections, whyNotSection } from '../sections.ts';

/** One argument: its JSON Schema, and the check of its value. */
export type Argument = { readonly schema: object; readonly check: FieldCheck };

/** Arguments that are known and have the right types, without those that are null; or why they are refused. */
export type CheckedArguments =
  | { readonly ok: true; readonly fields: Fields; readonly section: SqlSection }
  | Refused;

/** The arguments of a tool of one client, which may use some of the sections. */
export class ToolArguments {
  /** For its inputSchema. */
  readonly properties: Readonly<Record<string, object>>;
  readonly #checks: ReadonlyMap<string, FieldCheck>;
  readonly #sections: UsableSections<SqlSection>;

  constructor(sections: UsableSections<SqlSection>, own: Readonly<Record<string, Argument>>) {
    const { usable, served } = sections.names;
    const schema = { type: 'string', enum: usable, description: `Default: ${usable[0]}.` };
    const known = served.length === 1 ? own : { ...own, section: { schema, check: isText } };
    const entries = Object.entries(known);
    this.#sections = sections;
    this.properties = Object.fromEntries(entries.map(([name, one]) => [name, one.schema]));
    this.#checks = new Map(entries.map(([name, { check }]) => [name, check]));
  }

  /** Checks the arguments of a call. */
  check(args: Fields): CheckedArguments {
    const fault = findFault(args, this.#checks);
    if (fault !== null) return refuse(fault.code, `${fault.message}.`);
    const fields = present(args);
    const failure = whyNotSection('section', fields.section, this.#sections.names);
    if (failure !== null) return { ok: false, failure };
    const name = (fields.section as string | undefined) ?? null;
    return { ok: true, fields, section: this.#sections.of(name) };
  }
}
