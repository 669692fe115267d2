// The named statements of all served sections: loaded together, and replaced together.
import { dirname } from 'node:path';
import type { Clients } from '../clients/client.ts';
import type { Config } from '../config/config.ts';
import { findConflicts, loadStatements, type SectionStatements } from './load-named.ts';
import type { NamedFault, NamedStatement } from './statement.ts';

/** The statements of each section that has some, by the section's name. */
export type NamedBySection = Readonly<Record<string, readonly NamedStatement[]>>;

/** A fault of a file of a section's directory; `file` is its whole path. */
export type SectionNamedFault = NamedFault & { readonly section: string };

/** The settings of a section that say where its statements are. */
type NamedSettings = Pick<Config, 'section' | 'named' | 'idempotencyTable'>;

/** The parsed directories, and the faults that need no other file to be seen. */
export type ParsedDirectories = {
  readonly sections: readonly SectionStatements[];
  readonly faults: readonly SectionNamedFault[];
};

/** Parses the directories of all sections. Never throws. */
export function parseDirectories(sections: readonly NamedSettings[]): ParsedDirectories {
  const parsed: SectionStatements[] = [];
  const faults: SectionNamedFault[] = [];
  for (const { section, named: directory, idempotencyTable } of sections) {
    if (directory === null) continue;
    const loaded = loadStatements(directory, { hasIdempotencyTable: idempotencyTable !== null });
    if (loaded.ok) parsed.push({ section, directory, statements: loaded.statements });
    else for (const fault of loaded.faults) faults.push({ ...fault, section });
  }
  return { sections: parsed, faults };
}

/** All faults: those of each directory, names that are there twice, and clients that do not exist. @param clients null: none are configured */
export function findNamedFaults(
  { sections, faults }: ParsedDirectories,
  clients: Clients | null,
): readonly SectionNamedFault[] {
  const conflicts = findConflicts(sections, clients).map((fault) => {
    const owner = sections.find(({ directory }) => directory === dirname(fault.file));
    return { ...fault, section: owner?.section ?? '' };
  });
  return [...faults, ...conflicts];
}

/** The statements by section. To be used only if there are no faults. */
export function statementsOf({ sections }: ParsedDirectories): NamedBySection {
  return Object.fromEntries(sections.map(({ section, statements }) => [section, statements]));
}
