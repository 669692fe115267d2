// A release as values: what it consists of, what speaks against it, and the commands that publish it.
import { listUnknownFacts, type ProjectFacts } from '../support/project-facts.ts';

/** The state of a checkout, as far as a release depends on it. */
export type Checkout = {
  readonly version: string;
  readonly changelog: string;
  readonly facts: ProjectFacts;
  /** Lines of `git status --porcelain`. */
  readonly changed: readonly string[];
  readonly tags: readonly string[];
};

/** The files of a release, in the folder of the release. */
export type Artefacts = {
  readonly folder: string;
  /** The packages for npm. */
  readonly npm: readonly string[];
  /** Other files: packages of systems, the list of parts, the checksums. */
  readonly files: readonly string[];
};

/** A command with its arguments. */
export type Command = readonly [string, ...string[]];

/** The tag of a version. */
export const tagOf = (version: string): string => `v${version}`;

/** Lists the reasons for which this checkout must not be published. */
export function findObstacles({
  version,
  changelog,
  facts,
  changed,
  tags,
}: Checkout): readonly string[] {
  const unknown = listUnknownFacts(facts).map(
    (name) => `docs/project-facts.json: ${name} is empty, and only a person can give it`,
  );
  const [, unreleased = ''] = /^## Unreleased\n([\s\S]*?)(?=^## )/m.exec(changelog) ?? [];
  const isNamed = changelog.split('\n').some((line) => isHeadingOf(version, line));
  return [
    ...unknown,
    ...(isNamed ? [] : [`CHANGELOG.md has no section "${version} - <day>"`]),
    ...(/^- /m.test(unreleased) ? ['CHANGELOG.md has lines below Unreleased'] : []),
    ...(changed.length > 0 ? [`${changed.length} files are not committed`] : []),
    ...(tags.includes(tagOf(version)) ? [`the tag ${tagOf(version)} exists already`] : []),
  ];
}

function isHeadingOf(version: string, line: string): boolean {
  return line.startsWith(`## ${version} - `) && /\d{4}-\d\d-\d\d$/.test(line);
}

/** The commands that publish, in their order: what can be taken back comes first. */
export function planCommands(
  { version, facts: { repository } }: Pick<Checkout, 'version' | 'facts'>,
  { folder, npm, files }: Artefacts,
): readonly Command[] {
  const tag = tagOf(version);
  const place = (name: string) => `${folder}/${name}`;
  const upload: Command = [
    'gh',
    'release',
    'create',
    tag,
    '--verify-tag',
    '--title',
    version,
    '--notes',
    `The changes are in CHANGELOG.md, below ${version}.`,
    ...[...npm, ...files].map(place),
  ];
  return [
    ['git', 'tag', '--annotate', tag, '--message', `dbhttpd ${version}`],
    ['git', 'push', 'origin', tag],
    // Elsewhere, a person uploads the files.
    ...(repository.startsWith('https://github.com/') ? [upload] : []),
    ...npm.map((name): Command => ['npm', 'publish', place(name)]),
  ];
}

/** The result of a release or of a dry run, in lines for a person. */
export type Outcome = { readonly isReady: boolean; readonly lines: readonly string[] };

/**
 * Publishes if that is ordered and nothing speaks against it, and says what it did or would do. `execute` runs a command, and throws if the
 * command fails: the commands after it are not run.
 */
export function release(
  checkout: Checkout,
  artefacts: Artefacts,
  order: { readonly isPublished: boolean; readonly execute: (command: Command) => void },
): Outcome {
  const obstacles = findObstacles(checkout);
  const commands = planCommands(checkout, artefacts);
  const isReady = obstacles.length === 0;
  const isPublished = isReady && order.isPublished;
  const shown = commands.map((command) => `  ${command.map(quote).join(' ')}`);
  if (isPublished) for (const command of commands) order.execute(command);
  return {
    isReady,
    lines: [
      `in ${artefacts.folder}:`,
      ...[...artefacts.npm, ...artefacts.files].map((name) => `  ${name}`),
      isPublished ? 'published, by these commands:' : 'nothing is published. These commands would:',
      ...shown,
      ...(isReady ? [] : ['not ready:', ...obstacles.map((reason) => `  ${reason}`)]),
      ...(isReady && !isPublished ? ['ready: scripts/release --publish'] : []),
    ],
  };
}

function quote(word: string): string {
  return /^[\w./:=~-]+$/.test(word) ? word : `'${word}'`;
}
