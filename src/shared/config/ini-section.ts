// Reading INI: the entries of sections, and every fault of their syntax. The only user of `ini`.
import { unsafe } from 'ini';

/** One `key = value` line. */
export type Entry = { readonly key: string; readonly value: string; readonly line: number };

/** A fault in the text. `line` counts from 1. Null: it belongs to no line. */
export type TextFault = {
  readonly key: string | null;
  readonly line: number | null;
  readonly problem: string;
};

/** The entries of a section, and its faults of syntax. */
export type Section = { readonly entries: readonly Entry[]; readonly faults: readonly TextFault[] };

type Line = { readonly text: string; readonly line: number };

/**
 * How a key is written. `plain`: once, and a comment may follow the value. `free`: once, and a `;` or `#` after it may belong to it, so it
 * is a fault. `verbatim`: on any number of lines, each with the text after the = sign as it is.
 */
export type KeyForm = 'plain' | 'free' | 'verbatim';

/** A section of a file in which every section counts. */
export type NamedSection = Section & {
  readonly name: string;
  /** The line of its header. */
  readonly line: number;
};

/**
 * Reads one section. Null: the text has none of that name. Splits the lines itself and gives only the values to `ini`, which would nest
 * `[a.b]`, turn `true` into a boolean, and silently cut `p;x` to `p`.
 */
export function readSection(
  text: string,
  name: string,
  formOf: (key: string) => KeyForm,
): Section | null {
  const found = splitSections(text).find((section) => section.name === name);
  return found === undefined ? null : readEntries(found, formOf);
}

/** Reads all sections, in the order of the text, in the same way. `findStrayLines` has the faults outside of sections. */
export function readSections(
  text: string,
  formOf: (key: string) => KeyForm,
): readonly NamedSection[] {
  return splitSections(text).map((section) => ({
    name: section.name,
    line: section.line,
    ...readEntries(section, formOf),
  }));
}

/** @param section faults of its header come first */
function readEntries(section: SectionText, formOf: (key: string) => KeyForm): Section {
  const faults: TextFault[] = section.repetitions.map((line) => ({
    key: null,
    line,
    problem: 'begins this section a second time',
  }));
  const seen = new Map<string, Entry>();
  const entries: Entry[] = [];
  for (const { text: content, line } of section.lines) {
    const equals = content.indexOf('=');
    if (equals < 1) {
      faults.push({
        key: null,
        line,
        problem: 'is neither `key = value` nor a [section] nor a comment',
      });
      continue;
    }
    const key = content.slice(0, equals).trim();
    const form = formOf(key);
    const first = seen.get(key);
    if (first !== undefined && form !== 'verbatim') {
      faults.push({ key, line, problem: `is already set in line ${first.line}` });
      continue;
    }
    const decoded = decodeValue(content.slice(equals + 1).trim(), form);
    if (!decoded.ok) faults.push({ key, line, problem: decoded.problem });
    // An unreadable entry counts as present, so that its absence is no second fault.
    const entry = { key, value: decoded.ok ? decoded.value : '', line };
    seen.set(key, entry);
    entries.push(entry);
  }
  const unreadable = new Set(faults.map((fault) => fault.key));
  return { entries: entries.filter((entry) => !unreadable.has(entry.key)), faults };
}

/** Finds the lines that belong to no section, whichever section is read: a key there would be ignored silently. */
export function findStrayLines(text: string): readonly TextFault[] {
  const faults: TextFault[] = [];
  let isInSection = false;
  for (const { text: content, line } of contentLines(text)) {
    if (content.startsWith('[')) {
      isInSection = true;
      if (!header.test(content)) faults.push({ key: null, line, problem: describeHeader(content) });
    } else if (!isInSection) {
      const equals = content.indexOf('=');
      const key = equals < 1 ? null : content.slice(0, equals).trim();
      faults.push({
        key,
        line,
        problem: 'is before the first [section], so no section would use it',
      });
    }
  }
  return faults;
}

function describeHeader(content: string): string {
  return content.includes(']')
    ? 'has text after the ] of a section, which must be on a line of its own'
    : 'begins a section with [ and does not close it with ]';
}

const header = /^\[([^\]]*)\]\s*(?:[;#].*)?$/;

/** The lines that are neither empty nor comments. */
function contentLines(text: string): readonly Line[] {
  return text
    .replace(/^\uFEFF/, '')
    .split(/\r\n|\n|\r/)
    .map((raw, index) => ({ text: raw.trim(), line: index + 1 }))
    .filter(({ text: content }) => content !== '' && !/^[;#]/.test(content));
}

/** `repetitions`: the lines of further headers with the same name. */
type SectionText = {
  readonly name: string;
  readonly line: number;
  readonly lines: readonly Line[];
  readonly repetitions: readonly number[];
};

function splitSections(text: string): readonly SectionText[] {
  const sections = new Map<string, { line: number; lines: Line[]; repetitions: number[] }>();
  let current: Line[] | null = null;
  for (const { text: content, line } of contentLines(text)) {
    // A faulty header opens its section too, so that it causes no second fault. `findStrayLines` reports it.
    const opened = /^\[([^\]]*)/.exec(content);
    if (opened === null) {
      current?.push({ text: content, line });
      continue;
    }
    const name = opened[1]?.trim() ?? '';
    const known = sections.get(name);
    const section = known ?? { line, lines: [], repetitions: [] };
    if (known === undefined) sections.set(name, section);
    else known.repetitions.push(line);
    current = section.lines;
  }
  return [...sections].map(([name, section]) => ({ name, ...section }));
}

type Decoded =
  | { readonly ok: true; readonly value: string }
  | { readonly ok: false; readonly problem: string };

function decodeValue(raw: string, form: KeyForm): Decoded {
  if (form === 'verbatim') return { ok: true, value: raw };
  const quote = raw[0];
  if (quote === '"' || quote === "'") return decodeQuoted(raw, quote);
  const value: string = unsafe(raw);
  if (value === raw) return { ok: true, value };
  const comment = raw.slice(value.length);
  // Only text after a blank is certainly a comment. Anything else may be part of the value.
  if (form === 'plain' && raw.startsWith(value) && /^\s+[;#]/.test(comment))
    return { ok: true, value };
  return { ok: false, problem: 'contains `;`, `#` or `\\` and must be quoted' };
}

function decodeQuoted(raw: string, quote: string): Decoded {
  const isClosed = raw.length > 1 && raw.endsWith(quote);
  if (!isClosed)
    return { ok: false, problem: 'has text after the closing quote, or no closing quote' };
  const inner = raw.slice(1, -1);
  // Used as it is: `ini` would parse it as JSON, and '123' would become a number.
  if (quote === "'") return { ok: true, value: inner };
  const value: unknown = unsafe(raw);
  // `ini` returns a text with its quotes if it is no JSON.
  if (typeof value === 'string' && (value !== raw || inner === '')) return { ok: true, value };
  return {
    ok: false,
    problem: 'needs `\\\\` for a backslash and `\\"` for a quote, or single quotes',
  };
}
