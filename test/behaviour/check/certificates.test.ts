// A start and --check report problems with certificates and keys before clients meet them.
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, test } from 'node:test';
import { createAsk } from '../../support/ask.ts';
import { createAuthority, type PairFiles } from '../../support/certificates.ts';
import { createDaemon, type Daemon, type Settings } from '../../support/daemon.ts';
import { logShows } from '../../support/log-shows.ts';
import { getReport } from '../../support/reports.ts';

const directory = mkdtempSync(join(tmpdir(), 'dbhttpd-certificates-'));
after(() => rmSync(directory, { recursive: true }));
const authority = createAuthority(directory);
const good = authority.issue('good');
const past = authority.issue('past', { when: 'past' });
const future = authority.issue('future', { when: 'future' });
const garbage = join(directory, 'garbage.pem');
writeFileSync(garbage, 'garbage\n', { mode: 0o600 });

const daemons: Daemon[] = [];
afterEach(async () => {
  for (const daemon of daemons.splice(0)) await daemon.dispose();
});

function create(settings: Settings): Daemon {
  const daemon = createDaemon(settings);
  daemons.push(daemon);
  return daemon;
}

const https = ({ cert, key }: PairFiles): Settings => ({ https_cert: cert, https_key: key });

/** Faults by their configurations: of several in one, all are listed. */
const unusable: readonly (readonly [
  settings: Settings,
  faults: Readonly<Record<string, RegExp>>,
])[] = [
  [
    { tls: 'verify', tls_ca: garbage, https_cert: good.cert, https_key: garbage },
    {
      'tls_ca that is no certificate': /\[world\] tls_ca: holds no PEM certificate$/m,
      'https_key that is no key': /\[world\] https_key: holds no PEM private key$/m,
    },
  ],
  [
    {
      ...{ tls: 'verify', tls_cert: garbage, tls_key: good.key },
      ...{ https_cert: good.cert, https_key: past.key },
    },
    {
      'tls_cert that is no certificate': /\[world\] tls_cert: holds no PEM certificate$/m,
      'https_cert with the key of another':
        /\[world\] https_cert: and its key do not belong together$/m,
    },
  ],
];
for (const [settings, faults] of unusable) {
  test(`a start and --check refuse a ${Object.keys(faults).join(', and a ')}`, async () => {
    const daemon = create(settings);
    const checked = await daemon.run(['--check']);
    assert.equal(checked.status, 78);
    assert.equal((await daemon.start()).status, 78);
    for (const fault of Object.values(faults)) {
      assert.match(checked.stderr, fault);
      await logShows(daemon, fault);
    }
  });
}

const lapsed: readonly (readonly [what: string, settings: Settings, problem: string])[] = [
  ['expired', https(past), 'expired on 2020-01-02T'],
  ['not yet valid', https(future), 'is not valid before 2048-01-01T'],
];
for (const [what, settings, problem] of lapsed) {
  const fault = new RegExp(`\\[world\\] https_cert: ${problem}`);
  const line = new RegExp(` warn .* is not valid now key=https_cert problem="${problem}`);
  test(`a certificate that is ${what} is a fault for --check, and a warning for a start`, async () => {
    const daemon = create(settings);
    const checked = await daemon.run(['--check']);
    assert.equal(checked.status, 78);
    assert.match(checked.stderr, fault);
    assert.match(checked.stderr, /database unreachable/);
    assert.equal((await daemon.start()).status, 0);
    await logShows(daemon, line);
  });
}

test('a certificate that expires within 14 days is a warning for --check and a start, and a metric has its time', async () => {
  const soon = authority.issue('soon', { when: 'soon' });
  const expiry = Date.parse(new X509Certificate(readFileSync(soon.cert)).validTo);
  const date = new Date(expiry).toISOString();
  const daemon = create({
    ...https(good),
    ...{ tls: 'verify', tls_ca: authority.cert, tls_cert: soon.cert, tls_key: soon.key },
  });
  const checked = await daemon.run(['--check']);
  const problem = `expires on ${date}, in less than 10 days`;
  assert.match(checked.stdout, new RegExp(`^warning: tls_cert ${problem}$`, 'm'));
  assert.doesNotMatch(checked.stdout + checked.stderr, /https_cert expires/);
  assert.equal(checked.status, 69);
  assert.equal((await daemon.start()).status, 0);
  const line = ` warn .* a certificate expires soon key=tls_cert problem="${problem}"`;
  await logShows(daemon, new RegExp(line));
  assert.doesNotMatch(daemon.readLog(), /soon key=https_cert/);
  const { text } = await getReport(createAsk(`https://${daemon.address()}`), '/metrics');
  const timeOf = (key: string) =>
    Number(
      new RegExp(`^dbhttpd_certificate_expiry_.*key="${key}"\\} (\\S+)$`, 'm').exec(text)?.[1],
    );
  assert.equal(timeOf('tls_cert') * 1000, expiry);
  assert.equal(timeOf('https_cert') * 1000, Date.parse('2049-12-31T23:59:59Z'));
  assert.ok(timeOf('tls_ca') > Date.now() / 1000);
});
