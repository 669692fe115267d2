// The protocol's conformance suite: what it finds with a gateway, compared with what is expected.
import { join, resolve } from 'node:path';
import { run } from '../compatibility/commands.ts';
import type { Verdict } from '../support/verdicts.ts';

const expected = 'scripts/agent-clients/expected-failures.yml';

/** A revision of the protocol, and the options that choose its scenarios. */
export type Revision = { readonly name: string; readonly options: readonly string[] };

/** All that the gateway serves. The suite has no list of requirements for the oldest. */
export const revisions: readonly Revision[] = [
  { name: '2026-07-28', options: ['--requirements', '2026-07-28'] },
  { name: '2025-11-25', options: ['--requirements', '2025-11-25'] },
  { name: '2025-06-18', options: ['--spec-version', '2025-06-18'] },
];

/** Runs the scenarios of one revision. @param packages the folder that the suite is installed in */
export async function runSuite(
  packages: string,
  url: string,
  { name, options }: Revision,
): Promise<Verdict> {
  const promise = `revision ${name}: the suite finds what is expected, and nothing else`;
  const program = join(packages, '@modelcontextprotocol/conformance/dist/index.js');
  const common = ['server', '--url', url, '--expected-failures', resolve(expected)];
  try {
    const said = await run(nodeOf(packages), [program, ...common, ...options], '.');
    const total = /^Total: (.+)$/m.exec(said)?.[1];
    return total === undefined
      ? { promise, kept: false, found: 'it printed no total' }
      : { promise, kept: true, found: `${total}, as expected` };
  } catch (error) {
    return { promise, kept: false, found: (error as Error).message };
  }
}

/** The Node that the suite and the inspector need, from npm's package `node`. */
export function nodeOf(packages: string): string {
  return join(packages, 'node/bin/node');
}
