// The named statements of all served sections: loaded together, checked against each other and the clients, and replaced together.
import { join } from 'node:path';
import { type Clients, defaultClient } from '../clients/client.ts';
import type { NamedSource } from '../config/load-config.ts';
import { type LoadedStatements, loadStatements } from './load-named.ts';
import type { NamedFault, NamedHead, NamedStatement } from './statement.ts';

/** The statements of each section that has some, by the section's name. */
export type NamedBySection = Readonly<Record<string, readonly NamedStatement[]>>;

/** A fault of a file of a section's directory; `file` is its whole path. */
export type SectionNamedFault = NamedFault & { readonly section: string };

/** A section and its statements: those of the files that are sound, and the heads of all. */
export type SectionStatements = Omit<LoadedStatements, 'faults'> & {
  readonly section: string;
  readonly directory: string;
};

/** The parsed directories, and the faults that need no other directory to be seen. */
export type ParsedDirectories = {
  readonly sections: readonly SectionStatements[];
  readonly faults: readonly SectionNamedFault[];
};

/** Parses the directories of all sections. Never throws. */
export function parseDirectories(sources: readonly NamedSource[]): ParsedDirectories {
  const sections: SectionStatements[] = [];
  const faults: SectionNamedFault[] = [];
  for (const { section, named: directory, idempotencyTable } of sources) {
    if (directory === null) continue;
    const hasIdempotencyTable = idempotencyTable !== null;
    const { faults: found, ...loaded } = loadStatements(directory, { hasIdempotencyTable });
    sections.push({ section, directory, ...loaded });
    faults.push(...found.map((fault) => ({ ...fault, section })));
  }
  return { sections, faults };
}

/**
 * All faults: those of each directory, names that are in several, and clients that do not exist.
 * @param clients null: none are configured, and there is only `default`
 */
export function findNamedFaults(
  { sections, faults }: ParsedDirectories,
  clients: Clients | null,
): readonly SectionNamedFault[] {
  return [...faults, ...findRepeatedNames(sections), ...findUnknownClients(sections, clients)];
}

function findRepeatedNames(sections: readonly SectionStatements[]): readonly SectionNamedFault[] {
  const faults: SectionNamedFault[] = [];
  const seen = new Map<string, { readonly section: string; readonly head: NamedHead }>();
  for (const { section, directory, heads } of sections) {
    for (const head of heads) {
      const { name, file, line } = head;
      const first = seen.get(name);
      if (first === undefined) seen.set(name, { section, head });
      else if (first.section !== section) {
        const place = `line ${first.head.line} of ${first.head.file} of the section ${first.section}`;
        const problem = `\`${name}\` is already in ${place}`;
        faults.push({ file: join(directory, file), line, problem, section });
      }
    }
  }
  return faults;
}

function findUnknownClients(
  sections: readonly SectionStatements[],
  clients: Clients | null,
): readonly SectionNamedFault[] {
  const known = new Set([defaultClient.name, ...(clients?.clients ?? []).map(({ name }) => name)]);
  if (clients !== null && clients.anonymous !== null) known.add(clients.anonymous.name);
  return sections.flatMap(({ section, directory, heads }) =>
    heads.flatMap(({ name, file, line, for: allowed }) =>
      (allowed ?? [])
        .filter((client) => !known.has(client))
        .map((client) => ({
          file: join(directory, file),
          line,
          problem: `\`-- for: …\` of \`${name}\`: there is no client \`${client}\``,
          section,
        })),
    ),
  );
}

/** The statements by section. To be used only if there are no faults. */
export function statementsOf({ sections }: ParsedDirectories): NamedBySection {
  return Object.fromEntries(sections.map(({ section, statements }) => [section, statements]));
}
