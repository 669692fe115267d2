// The file behind a configuration: read once, all sections that are asked for in, their settings or every fault out.
// Must not know what a section's settings are.
import { readFileSync, type Stats, statSync } from 'node:fs';
import type { Config, Sections } from './config.ts';
import { findLapses } from './credentials.ts';
import type { Place } from './default-paths.ts';
import type { TextFault } from './ini-section.ts';
import {
  type ConfigFile,
  loadBeside,
  loadInstance,
  loadListed,
  readWritten,
  type Written,
} from './section-settings.ts';

/** Which sections of which file. */
export type Target = {
  readonly configPath: string;
  /** Of `-s`: the first is the instance's; those after it list more servers of it. */
  readonly sections: readonly [string, ...string[]];
  /** Of `-m`: served beside the first. */
  readonly beside: readonly string[];
};

/** One thing wrong, naming file, section and key. Never holds a value. */
export type Fault = TextFault & { readonly file: string; readonly section: string };

/**
 * The outcome of reading the sections. `warnings`: what a start can live with and somebody must see to. `log` is where an
 * invalid first section wants the faults written, when it says so.
 */
export type Loaded =
  | { readonly kind: 'ok'; readonly sections: Sections; readonly warnings: readonly Fault[] }
  | { readonly kind: 'unreadable'; readonly reason: string }
  | { readonly kind: 'invalid'; readonly faults: readonly Fault[]; readonly log: string | null };

/** A process's environment: the main files hand it down. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads the sections of a file; every fault of all of them is found before it returns. Secrets in the environment go first,
 * for the first section alone.
 */
export function loadConfig(target: Target, env: Environment, place: Place): Loaded {
  const { configPath, sections: names, beside } = target;
  const [name, ...listedNames] = names;
  const read = readText(configPath);
  if (!read.ok) return { kind: 'unreadable', reason: `cannot read ${configPath}: ${read.reason}` };
  const faults: Fault[] = [];
  const blame = (section: string, found: readonly TextFault[]) => {
    for (const fault of found) faults.push({ ...fault, file: configPath, section });
  };
  const whole = (problem: string): readonly TextFault[] => [{ key: null, line: null, problem }];
  if (read.text === null) {
    blame(name, whole('the file is not valid UTF-8'));
    return { kind: 'invalid', faults, log: null };
  }
  const file: ConfigFile = { path: configPath, text: read.text, stats: read.stats };
  const open = <T extends { readonly faults: readonly TextFault[] }>(
    section: string,
    load: (written: Written) => T,
  ): T | null => {
    const written = readWritten(file, section);
    const loaded = typeof written === 'string' ? null : load(written);
    blame(section, typeof written === 'string' ? whole(written) : (loaded?.faults ?? []));
    return loaded;
  };

  const first = open(name, (written) => loadInstance(written, file, env, place));
  if (first === null) {
    // What the others come to depends on it: only how they are written can be judged.
    for (const section of [...listedNames, ...beside]) open(section, (written) => written);
    return { kind: 'invalid', faults, log: null };
  }
  let { candidates } = first.config;
  for (const section of listedNames) {
    const listed = open(section, (written) => loadListed(written, file, first, candidates, env));
    if (listed !== null) candidates = [...candidates, ...listed.config.candidates];
  }
  const others = beside.flatMap((section): readonly Config[] => {
    const loaded = open(section, (written) => loadBeside(written, file, first));
    return loaded === null ? [] : [loaded.config];
  });
  if (faults.length > 0) {
    // A path that is no log's may be a file that must not be written to.
    const isNoLog = first.values.log !== null && first.faults.some(({ key }) => key === 'log');
    return { kind: 'invalid', faults, log: isNoLog ? null : first.config.log };
  }
  const config = Object.freeze({ ...first.config, candidates: Object.freeze(candidates) });
  const sections: Sections = [config, ...others];
  return { kind: 'ok', sections, warnings: sections.flatMap(findWarnings) };
}

/** Certificates that the daemon has once are the first section's, and told of it alone. */
function findWarnings(config: Config, index: number): readonly Fault[] {
  const { configPath: file, section } = config;
  return findLapses(index === 0 ? config : { ...config, httpsTexts: null }).map((lapse) => ({
    ...lapse,
    line: null,
    file,
    section,
  }));
}

/** A fault in one line: file, section, key, line, problem. */
export function formatFault({ file, section, key, line, problem }: Fault): string {
  const place = line === null ? '' : ` (line ${line})`;
  return `${file}: [${section}]${key === null ? '' : ` ${key.slice(0, 64)}`}${place}: ${problem}`;
}

type Read =
  | { readonly ok: true; readonly text: string | null; readonly stats: Stats }
  | { readonly ok: false; readonly reason: string };

/** Text of a file, null when it is not UTF-8; the reason is the system's own word for it. */
function readText(file: string): Read {
  try {
    const stats = statSync(file);
    const bytes = readFileSync(file);
    try {
      return { ok: true, text: new TextDecoder('utf-8', { fatal: true }).decode(bytes), stats };
    } catch {
      return { ok: true, text: null, stats };
    }
  } catch (error) {
    return { ok: false, reason: (error as NodeJS.ErrnoException).code ?? 'unreadable' };
  }
}
