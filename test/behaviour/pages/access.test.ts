// docs/operate/access.md and docs/operate/tls.md: every command is run as it stands, and prints what the page shows.
import assert from 'node:assert/strict';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, type TestContext, test } from 'node:test';
import { createAuthority, type PairFiles } from '../../support/certificates.ts';
import { createDaemon } from '../../support/daemon.ts';
import { isServerGiven, ownServerOnly, startDatabase } from '../../support/database/mariadb.ts';
import { eventually } from '../../support/eventually.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { findBlocks } from '../../support/pages/page-blocks.ts';
import { localiseGateway, openCommands } from '../../support/pages/page-commands.ts';
import { useDatabase } from '../../support/use-gateway.ts';
import { createWorkspace } from '../../support/workspace.ts';

const pageBlocks = (name: string) => findBlocks(readFileSync(`docs/operate/${name}.md`, 'utf8'));
const access = pageBlocks('access');
const tls = pageBlocks('tls');
const shown = new Set<string>();

const workspace = createWorkspace('access', () => {});
after(workspace.remove);
const authority = createAuthority(workspace.path);
const database = useDatabase();

async function gatewayFor(
  t: TestContext,
  wish: Parameters<typeof startGateway>[0],
): Promise<Gateway> {
  const gateway = await startGateway({ ...wish, settings: { workers: 1, ...wish.settings } });
  t.after(gateway.stop);
  return gateway;
}

/** The commands of a section, for a gateway whose other files are in the workspace. */
function tell(blocks: typeof access, heading: string, gateway: Gateway) {
  shown.add(heading);
  const localise = localiseGateway(gateway);
  return openCommands(blocks, heading, {
    localise: (text) => localise(text).replaceAll('/etc/dbhttpd', `${workspace.path}/dbhttpd`),
  });
}

test('access: a token, a page of another site and an unknown Host are checked before any SQL', async (t) => {
  const tokens = join(workspace.path, 'dbhttpd.tokens');
  writeFileSync(tokens, 'a-long-random-text\n', { mode: 0o600 });
  const gateway = await gatewayFor(t, { database, settings: { token_file: tokens } });
  const first = tell(access, 'Who may ask', gateway);
  await first.run();
  await first.run();
  first.end();
  const second = tell(access, 'Pages in browsers', gateway);
  await second.run();
  await second.run();
  await second.watch();
  second.end();
});

test('HTTPS: --check refuses the key of another certificate, and clients agree on TLS 1.3', async (t) => {
  const served = authority.issue('served');
  copyFileSync(authority.cert, join(workspace.path, 'dbhttpd-ca.pem'));
  const faulty = createDaemon({ https_cert: served.cert, https_key: authority.issue('other').key });
  t.after(faulty.dispose);
  copyFileSync(faulty.configPath, join(workspace.path, 'dbhttpd.ini'));
  const settings = { https_cert: served.cert, https_key: served.key };
  const gateway = await gatewayFor(t, { database, settings });
  shown.add('HTTPS for clients');
  const localise = localiseGateway(gateway);
  const page = openCommands(tls, 'HTTPS for clients', {
    localise: (text) =>
      localise(text.replaceAll('/etc/dbhttpd.ini', faulty.configPath)).replaceAll(
        '/etc/dbhttpd',
        `${workspace.path}/dbhttpd`,
      ),
  });
  await page.run();
  await page.watch();
  await page.run();
  page.end();
});

test('the way to the database: encrypted if the server shows the right certificate, else refused with a reason', async (t) => {
  if (!ownServerOnly(t)) return;
  const own = await startTlsDatabase(t, authority.issue('database'));
  const account = { user: 'app', password: 'one' };
  await own.query(`
    create user app@'%' identified by 'one'; grant all on ${own.name}.* to app@'%';
    ${tls.find(({ language }) => language === 'sql')?.text}`);
  const stranger = createAuthority(workspace.path, 'stranger');
  const verify = (tls_ca: string) => ({
    database: { ...own, ...account },
    settings: { tls: 'verify', tls_ca },
  });
  const right = await gatewayFor(t, verify(authority.cert));
  const wrong = await gatewayFor(t, verify(stranger.cert));
  const page = tell(tls, 'To the database', right);
  await page.watch();
  const failing = tell(tls, 'To the database', wrong);
  await assert.rejects(failing.run());
  await failing.watch();
  failing.end();
  const plain = await gatewayFor(t, { database: { ...own, ...account } });
  await eventually(
    'the server refuses it',
    async () => (await plain.get('/readyz')).json<{ errno: number }>().errno === 1045,
  );
});

async function startTlsDatabase(t: TestContext, { cert, key }: PairFiles) {
  const args = [`--ssl-ca=${authority.cert}`, `--ssl-cert=${cert}`, `--ssl-key=${key}`];
  const started = await startDatabase({ args });
  t.after(started.stop);
  return started;
}

test('every section with commands was run', (t) => {
  if (isServerGiven()) return t.skip('the section about the database was not run');
  const headings = [...access, ...tls]
    .filter(({ language }) => language === 'sh')
    .map(({ heading }) => heading);
  assert.deepEqual([...shown].sort(), [...new Set(headings)].sort());
});
