// A start and --check report problems with certificates and keys before clients meet them.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, test } from 'node:test';
import { createAuthority, type PairFiles } from '../../support/certificates.ts';
import { createDaemon, type Daemon, type Settings } from '../../support/daemon.ts';

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
      assert.match(daemon.readLog(), fault);
    }
  });
}

const lapsed: readonly (readonly [what: string, settings: Settings, fault: RegExp])[] = [
  ['expired', https(past), /\[world\] https_cert: has expired on 2020-01-02T/],
  ['not yet valid', https(future), /\[world\] https_cert: is not valid before 2048-01-01T/],
];
for (const [what, settings, fault] of lapsed) {
  test(`a certificate that is ${what} is a fault for --check, and a warning for a start`, async () => {
    const daemon = create(settings);
    const checked = await daemon.run(['--check']);
    assert.equal(checked.status, 78);
    assert.match(checked.stderr, fault);
    assert.match(checked.stderr, /database unreachable/);
    assert.equal((await daemon.start()).status, 0);
    assert.match(daemon.readLog(), new RegExp(` warn .*${fault.source}`));
  });
}
