// The table of the command's options. The parser, --help and the completions of shells use it.

/** The value behind an option. `kind` says how a shell completes it, `shown` how --help writes it. */
export type OptionValue =
  | { readonly kind: 'file'; readonly shown: '<file>' }
  | { readonly kind: 'sections'; readonly shown: '<sections>' }
  | { readonly kind: 'address'; readonly shown: '<address>' }
  | { readonly kind: 'table'; readonly shown: '<table>' };

/** One option. `names`: as they are typed, the short one first. `value`: null if none follows. */
export type CommandOption = {
  readonly names: readonly [string, ...string[]];
  readonly value: OptionValue | null;
  /** For people, without a period at its end. */
  readonly meaning: string;
};

/** Every option, in the order of --help. */
export const commandOptions: readonly CommandOption[] = [
  {
    names: ['-c'],
    value: { kind: 'file', shown: '<file>' },
    meaning: 'the configuration file, by its absolute path',
  },
  {
    names: ['-s'],
    value: { kind: 'sections', shown: '<sections>' },
    meaning: 'the section to serve; further ones, joined by :, list more servers of its database',
  },
  {
    names: ['-m'],
    value: { kind: 'sections', shown: '<sections>' },
    meaning: 'sections to serve beside it, joined by :, each a database of its own',
  },
  {
    names: ['--check'],
    value: null,
    meaning:
      'validate everything, connect once, print the effective settings and a verdict; start nothing',
  },
  { names: ['--json'], value: null, meaning: 'with --check: print one JSON object' },
  { names: ['--foreground'], value: null, meaning: 'stay in the foreground and log to stderr' },
  {
    names: ['--primary'],
    value: { kind: 'address', shown: '<address>' },
    meaning:
      'set the server that is the primary, after a deliberate return to it or after a restore',
  },
  {
    names: ['--types'],
    value: null,
    meaning:
      'print a TypeScript module with the type of the named statements, for the client; start nothing',
  },
  {
    names: ['--scaffold'],
    value: { kind: 'table', shown: '<table>' },
    meaning: 'print named statements for a table, to start from; start nothing',
  },
  {
    names: ['--new-token'],
    value: null,
    meaning: 'print a random token and its line of the clients file; takes nothing else',
  },
  { names: ['-h', '--help'], value: null, meaning: 'print this text' },
  { names: ['-V', '--version'], value: null, meaning: 'print the version' },
];
