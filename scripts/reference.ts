// Writes the completions, and the generated parts of the documents, of package.json, of LICENSE and of the Dockerfile, from the program's tables and the project's facts.
import { readFileSync, writeFileSync } from 'node:fs';
import { type ClientOption, clientOptions } from '../src/shared/config/clients-file.ts';
import {
  describeClientOptions,
  describeInitial,
  describeOptions,
} from '../src/shared/config/describe.ts';
import { isOfInstance, type Option, optionKeys, options } from '../src/shared/config/options.ts';
import { describeType } from '../src/shared/config/values.ts';
import {
  type FailureFacts,
  failures,
  type MysqlFailureFacts,
  mysqlFailures,
  otherMysqlFailure,
  outcomeMeanings,
  unready,
} from '../src/shared/failure-codes.ts';
import { errorName } from '../src/shared/mysql/error-names.ts';
import { supervisorMetrics, workerMetrics } from '../src/shared/observe/metrics.ts';
import { exitCodes, exitMeanings } from '../src/shared/process/exit-codes.ts';
import { completions } from './support/completions.ts';
import { describeDoors } from './support/doors.ts';
import { renderList } from './support/mdoc.ts';
import {
  completeLicense,
  completePackage,
  describeImageSource,
  describeReporting,
  describeSource,
  readProjectFacts,
} from './support/project-facts.ts';

/** The generated parts: each name in a page's marks, and its text. */
const parts = {
  configuration: describeOptions,
  clients: describeClientOptions,
  doors: describeDoors,
  metrics: describeMetrics,
  codes: describeFailures,
  mysql: describeMysqlFailures,
  outcomes: () => describeMeanings('outcome', outcomeMeanings),
  unready: () => describeMeanings('code', unready),
  exits: () => ['| exit | meaning |', '|---|---|', ...exits.map(exitRow)].join('\n'),
  'manual-exits': listExits,
  'manual-configuration': listOptions,
  'manual-clients': listClientOptions,
  reporting: () => describeReporting(readProjectFacts()),
  source: () => describeSource(readProjectFacts()),
  'image-source': () => describeImageSource(readProjectFacts()),
  python: () => showProgram('purchase.py', 'python'),
  php: () => showProgram('purchase.php', 'php'),
  go: () => showProgram('purchase.go', 'go'),
} as const satisfies Readonly<Record<string, () => string>>;

/** The pages that have generated parts, and which. */
export const pages = {
  '.github/SECURITY.md': ['reporting'],
  'CONTRIBUTING.md': ['source'],
  'deploy/docker/Dockerfile': ['image-source'],
  'docs/guides/other-languages.md': ['python', 'php', 'go'],
  'docs/operate/clients.md': ['doors'],
  'docs/reference/configuration.md': ['configuration', 'clients'],
  'docs/reference/dbhttpd.8': ['manual-configuration', 'manual-clients', 'manual-exits'],
  'docs/reference/errors.md': ['codes', 'mysql', 'outcomes', 'unready'],
  'docs/reference/metrics.md': ['metrics'],
  'docs/reference/command-line.md': ['exits'],
} as const satisfies Readonly<Record<string, readonly (keyof typeof parts)[]>>;

/** A page's text with its generated parts as they must be. Throws when a part's marks are missing. */
export function withReference(page: keyof typeof pages, text: string): string {
  let whole = text;
  for (const name of pages[page]) whole = replacePart(page, whole, name, parts[name]());
  return whole;
}

/** Marks are comments: Markdown's, with empty lines around the part, or those of mdoc and of a Dockerfile, without. */
function replacePart(page: string, text: string, name: string, content: string): string {
  const [open, close, room] = page.endsWith('.md')
    ? ['<!-- ', ' -->', '\n']
    : [page.endsWith('.8') ? '.\\" ' : '# ', '', ''];
  const [start, end] = [`${open}${name}: generated${close}\n`, `${open}end of ${name}${close}\n`];
  const from = text.indexOf(start);
  const to = text.indexOf(end);
  if (from < 0 || to < from) throw new Error(`${page} has no part "${name}"`);
  const head = text.slice(0, from + start.length);
  const part = content === '' ? '' : `${content.trimEnd()}\n`;
  return `${head}${room}${part}${room}${text.slice(to)}`;
}

const exits = Object.entries(exitMeanings).map(([name, meaning]) => {
  return { status: exitCodes[name as keyof typeof exitCodes], meaning };
});

const exitRow = ({ status, meaning }: (typeof exits)[number]) => `| ${status} | ${meaning} |`;

function listExits(): string {
  return renderList(
    exits.map(({ status, meaning }) => ({ term: `${status}`, sentences: [`${meaning}.`] })),
  );
}

function listOptions(): string {
  return renderList(
    optionKeys.map((key) => {
      const option: Option = options[key];
      const meaning = `${option.meaning}.`.split(/(?<=\.) (?=[A-Z])/);
      const facts = [
        `values: ${describeType(option.type)}.`,
        `default: ${describeInitial(option)}.`,
        ...(isOfInstance(key) ? ['once per daemon.'] : []),
      ];
      return { term: key, sentences: [...meaning, ...facts] };
    }),
  );
}

function listClientOptions(): string {
  return renderList(
    Object.entries<ClientOption>(clientOptions).map(([key, option]) => ({
      term: key,
      sentences: [
        `${option.meaning}.`,
        `values: ${describeType(option.type)}.`,
        `default: ${describeInitial(option)}.`,
        ...(option.ofCredentials === true ? ['not in [anonymous].'] : []),
      ],
    })),
  );
}

const repetitions: Readonly<Record<FailureFacts['repeat'], string>> = {
  yes: 'yes: nothing was executed',
  changed: 'after fixing it: nothing was executed',
  outcome: 'read `OUTCOME`',
  pointless: 'after fixing it; read `OUTCOME`',
  unreported: 'no client is left',
};

/** A Markdown table of every metric: name, type, labels, meaning. */
function describeMetrics(): string {
  const rows = Object.entries({ ...workerMetrics, ...supervisorMetrics }).map(
    ([name, { type, labels, help }]) =>
      `| \`${name}\` | ${type} | ${labels.join(', ') || '–'} | ${help} |`,
  );
  return ['| metric | type | labels | meaning |', '|---|---|---|---|', ...rows].join('\n');
}

function describeFailures(): string {
  const rows = Object.entries<FailureFacts>(failures).map(
    ([code, { status, sentStatus, meaning, repeat }]) => {
      const statuses = sentStatus === undefined ? `${status}` : `${status}, ${sentStatus}`;
      const mayRepeat = repetitions[repeat];
      const ifSent = sentStatus === undefined ? '' : `; with ${sentStatus} read \`OUTCOME\``;
      return `| \`${code}\` | ${statuses} | ${meaning} | ${mayRepeat}${ifSent} |`;
    },
  );
  const head = ['| CODE | status | meaning | may I repeat it? |', '|---|---|---|---|'];
  return [...head, ...rows].join('\n');
}

const mysqlRepetitions: Readonly<Record<MysqlFailureFacts['repeat'], string>> = {
  yes: 'yes',
  read: 'for reads only',
  no: 'no',
};

function describeMysqlFailures(): string {
  const rows = mysqlFailures.map(({ errno, when, status, meaning, repeat }) => {
    const whole = when === undefined ? meaning : `${when}: ${meaning}`;
    return `| ${errno} | \`${errorName(errno)}\` | ${status} | ${whole} | ${mysqlRepetitions[repeat]} |`;
  });
  const { status, meaning, repeat } = otherMysqlFailure;
  const last = `| any other | | ${status} | ${meaning} | ${mysqlRepetitions[repeat]} |`;
  const head = ['| errno | code | status | meaning | retryable |', '|---|---|---|---|---|'];
  return [...head, ...rows, last].join('\n');
}

function describeMeanings(title: string, meanings: Readonly<Record<string, string>>): string {
  const rows = Object.entries(meanings).map(([word, meaning]) => `| \`${word}\` | ${meaning} |`);
  return [`| ${title} | meaning |`, '|---|---|', ...rows].join('\n');
}

/** A program in another language, as a block of its page. */
function showProgram(name: string, language: string): string {
  const place = new URL(`../../docs/guides/other-languages/${name}`, import.meta.url);
  return [`\`\`\`${language}`, readFileSync(place, 'utf8').trim(), '```'].join('\n');
}

if (process.argv[1] === import.meta.filename) {
  for (const [name, complete] of Object.entries(completions)) {
    writeFileSync(new URL(`../../deploy/completions/${name}`, import.meta.url), complete());
  }
  for (const page of Object.keys(pages) as (keyof typeof pages)[]) {
    const place = new URL(`../../${page}`, import.meta.url);
    writeFileSync(place, withReference(page, readFileSync(place, 'utf8')));
  }
  for (const [name, complete] of Object.entries({
    'package.json': completePackage,
    LICENSE: completeLicense,
  })) {
    const place = new URL(`../../${name}`, import.meta.url);
    writeFileSync(place, complete(readFileSync(place, 'utf8'), readProjectFacts()));
  }
}
