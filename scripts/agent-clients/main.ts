// scripts/conformance, once everything is built: the protocol's conformance suite and its inspector with the real daemon.
// Exit 0: they found only what is expected; 1: something else, or they could not run; 64: command line; 130: stopped by a signal.
import { parseArgs } from 'node:util';
import { startDatabase } from '../../test/support/database/mariadb.ts';
import { startGateway } from '../../test/support/gateway.ts';
import { installCached } from '../support/cached-packages.ts';
import { runCommand, say } from '../support/run-command.ts';
import type { Verdict } from '../support/verdicts.ts';
import { inspect } from './inspector.ts';
import { revisions, runSuite } from './suite.ts';

const help = `Usage: scripts/conformance

Runs the Model Context Protocol's conformance suite and its inspector with a gateway on a private MariaDB. The suite's own tools are not
there, so scripts/agent-clients/expected-failures.yml lists what fails. Takes half a minute once both are installed.

They come from npm, into a cache: DBHTTPD_CONFORMANCE_DIR, or ~/.cache/dbhttpd/conformance.
`;

const longestMs = 15 * 60_000;

async function run(): Promise<readonly Verdict[]> {
  const packages = await installCached(
    {
      name: 'conformance',
      wanted: 'scripts/agent-clients',
      variable: 'DBHTTPD_CONFORMANCE_DIR',
      // Node's own binary is put in its place by an install script.
      npmOptions: [],
    },
    say,
  );
  const database = await startDatabase();
  try {
    const gateway = await startGateway({ database, settings: { mcp: 'on', workers: 2 } });
    try {
      const url = `${gateway.url}/mcp`;
      const verdicts: Verdict[] = [];
      for (const revision of revisions) verdicts.push(await runSuite(packages, url, revision));
      verdicts.push(...(await inspect(packages, url)));
      return verdicts;
    } finally {
      await gateway.stop();
    }
  } finally {
    await database.stop();
  }
}

await runCommand({
  help,
  prefix: 'dbhttpd-conformance-',
  parse: (argv) => {
    const { values } = parseArgs({
      args: [...argv],
      options: { help: { type: 'boolean', default: false } },
    });
    return values.help ? null : {};
  },
  longestMs: () => longestMs,
  run,
});
