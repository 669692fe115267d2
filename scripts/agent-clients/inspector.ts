// The protocol's inspector on its command line: lists the tools, calls one, and shows an error.
import { join } from 'node:path';
import { run } from '../compatibility/commands.ts';
import type { Verdict } from '../support/verdicts.ts';
import { nodeOf } from './suite.ts';

type Check = {
  readonly promise: string;
  readonly options: readonly string[];
  readonly shown: RegExp;
};

const call = (sql: string) => [
  ...['--method', 'tools/call', '--tool-name', 'query'],
  ...['--tool-arg', `sql=${sql}`],
];

const checks: readonly Check[] = [
  {
    promise: 'the inspector lists the tools',
    options: ['--method', 'tools/list'],
    shown: /"name": "describe"[\s\S]*"name": "query"/,
  },
  {
    promise: 'the inspector shows rows',
    options: call('select 1 as one'),
    shown: /\[\[1\]\]/,
  },
  {
    promise: 'the inspector shows why a write is refused',
    options: call('create table refused (id int)'),
    shown: /READ_ONLY/,
  },
];

/** Makes each call. @param packages the folder that the inspector is installed in */
export async function inspect(packages: string, url: string): Promise<readonly Verdict[]> {
  const program = join(packages, '@modelcontextprotocol/inspector/clients/launcher/build/index.js');
  const verdicts: Verdict[] = [];
  for (const { promise, options, shown } of checks) {
    const args = [program, '--cli', url, '--transport', 'http', ...options];
    const said = await run(nodeOf(packages), args, '.').catch(({ message }: Error) => message);
    verdicts.push({ promise, kept: shown.test(said), found: shown.test(said) ? '' : said });
  }
  return verdicts;
}
