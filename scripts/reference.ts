// Writes the generated parts of README.md and docs/ anew, from the tables that the program uses.
// Must not know anything that those tables do not say.
import { readFileSync, writeFileSync } from 'node:fs';
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
import { describeMetrics } from '../src/shared/process/describe-metrics.ts';
import { describeOptions } from '../src/shared/settings/describe.ts';

/** What is generated: its name in a page's marks, and its text. */
const parts = {
  configuration: describeOptions,
  metrics: describeMetrics,
  codes: describeFailures,
  mysql: describeMysqlFailures,
  outcomes: () => describeMeanings('outcome', outcomeMeanings),
  unready: () => describeMeanings('code', unready),
} as const satisfies Readonly<Record<string, () => string>>;

/** The pages that have generated parts, and which. */
export const pages = {
  'README.md': ['outcomes'],
  'docs/configuration.md': ['configuration'],
  'docs/errors.md': ['codes', 'mysql', 'outcomes', 'unready'],
  'docs/metrics.md': ['metrics'],
} as const satisfies Readonly<Record<string, readonly (keyof typeof parts)[]>>;

/** A page's text with its generated parts as they must be. Throws when a part's marks are missing. */
export function withReference(page: keyof typeof pages, text: string): string {
  let whole = text;
  for (const name of pages[page]) whole = replacePart(page, whole, name, parts[name]());
  return whole;
}

function replacePart(page: string, text: string, name: string, content: string): string {
  const [start, end] = [`<!-- ${name}: generated -->\n`, `<!-- end of ${name} -->`];
  const from = text.indexOf(start);
  const to = text.indexOf(end);
  if (from < 0 || to < from) throw new Error(`${page} has no part "${name}"`);
  return `${text.slice(0, from + start.length)}\n${content.trim()}\n\n${text.slice(to)}`;
}

const repetitions: Readonly<Record<FailureFacts['repeat'], string>> = {
  yes: 'yes: nothing was executed',
  changed: 'after mending it: nothing was executed',
  outcome: 'read `OUTCOME`',
  pointless: 'after mending it; read `OUTCOME`',
  untold: 'nobody is told',
};

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
  read: 'for what only read',
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

if (process.argv[1] === import.meta.filename) {
  for (const page of Object.keys(pages) as (keyof typeof pages)[]) {
    const place = new URL(`../../${page}`, import.meta.url);
    writeFileSync(place, withReference(page, readFileSync(place, 'utf8')));
  }
}
