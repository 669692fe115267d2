// The sections of a command that prints text from them and from their databases, and the faults that keep it from doing so.
import type { Sections } from '../../shared/config/config.ts';
import {
  type Environment,
  type Fault,
  loadConfig,
  type Target,
} from '../../shared/config/load-config.ts';
import { currentPlace } from '../../shared/config/machine-defaults.ts';
import { type ExitCode, exitCodes } from '../../shared/process/exit-codes.ts';
import { escapeControl } from '../../shared/process/log.ts';
import { exitCodeOf, type Finding, fault, formatFaults } from '../check/report.ts';

/** The valid settings of all sections, or why there are none. */
export type OpenedSections =
  | { readonly ok: true; readonly sections: Sections }
  | { readonly ok: false; readonly findings: readonly Finding[] };

/** Loads the configuration. */
export function openSections(target: Target, env: Environment): OpenedSections {
  const loaded = loadConfig(target, env, currentPlace());
  switch (loaded.kind) {
    case 'ok':
      return { ok: true, sections: loaded.sections };
    case 'unreadable': {
      const place = { file: target.configPath, section: null, server: null, key: null, line: null };
      const finding = fault(exitCodes.configUnreadable, place, loaded.reason);
      return { ok: false, findings: [finding] };
    }
    case 'invalid':
      return { ok: false, findings: loaded.faults.map(invalid) };
    default:
      return loaded satisfies never;
  }
}

function invalid({ problem, ...place }: Fault): Finding {
  return fault(exitCodes.configInvalid, { ...place, server: null }, problem);
}

/** Prints faults on stderr as --check does, and returns the exit status of the first. */
export function printFaults(findings: readonly Finding[]): ExitCode {
  const report = { sections: [], findings } as const;
  for (const line of formatFaults(report)) process.stderr.write(`${escapeControl(line)}\n`);
  return exitCodeOf(report);
}
