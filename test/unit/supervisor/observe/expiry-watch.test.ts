// The promise to operators: a certificate that expires soon is reported each day, from two weeks before on.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { Sections } from '../../../../src/shared/config/config.ts';
import type { Log, LogFields } from '../../../../src/shared/process/log.ts';
import { ExpiryWatch } from '../../../../src/supervisor/observe/expiry-watch.ts';
import { createAuthority } from '../../../support/certificates.ts';

const directory = mkdtempSync(join(tmpdir(), 'dbhttpd-watch-'));
after(() => rmSync(directory, { recursive: true }));
const cert = readFileSync(createAuthority(directory).issue('used').cert, 'utf8');
const dayMs = 24 * 60 * 60 * 1000;
const expiresAtMs = Date.parse('2049-12-31T23:59:59Z');

/** Sections with the same certificate for HTTPS, and the first with one towards MySQL. */
function sectionsOf(...names: readonly string[]): Sections {
  const httpsTexts = { cert, key: '' };
  const sections = names.map((section, index) => ({
    section,
    httpsTexts,
    tlsTexts: { ca: null, cert: index === 0 ? cert : null, key: null },
  }));
  return sections as unknown as Sections;
}

function recordLog(): { readonly log: Log; readonly lines: string[] } {
  const lines: string[] = [];
  const warn = (message: string, fields?: LogFields) =>
    void lines.push(`${message} ${JSON.stringify(fields)}`);
  const never = () => assert.fail('only warnings');
  return { lines, log: { warn, error: never, info: never, debug: null, reopen: never } };
}

test('reports a certificate each day from two weeks before it expires on, with its date, and afterwards', (t) => {
  t.mock.timers.enable({ apis: ['setInterval', 'Date'], now: expiresAtMs - 16.5 * dayMs });
  const { log, lines } = recordLog();
  const watch = new ExpiryWatch(sectionsOf('a', 'b'), log);
  watch.look(sectionsOf('a', 'b'));
  t.mock.timers.tick(2 * dayMs);
  assert.deepEqual(lines, []);
  t.mock.timers.tick(dayMs);
  const soon = 'expires on 2049-12-31T23:59:59.000Z, in less than 14 days';
  assert.deepEqual(lines.splice(0), [
    `a certificate expires soon {"section":"a","key":"tls_cert","problem":"${soon}"}`,
    `a certificate expires soon {"section":"a","key":"https_cert","problem":"${soon}"}`,
  ]);
  t.mock.timers.tick(13 * dayMs);
  assert.equal(lines.length, 2 * 13);
  assert.match(lines.at(-1) ?? '', /in less than a day"/);
  lines.splice(0);
  t.mock.timers.tick(dayMs);
  assert.match(lines.join(), /a certificate is not valid now .*"expired on 2049-12-31T/);
  assert.deepEqual(
    watch.certificates().map(({ expiresAtMs: at }) => at),
    [expiresAtMs, expiresAtMs],
  );
  watch.close();
  lines.splice(0);
  t.mock.timers.tick(2 * dayMs);
  assert.deepEqual(lines, []);
});

test('names no section if there is one', (t) => {
  t.mock.timers.enable({ apis: ['setInterval', 'Date'], now: expiresAtMs - dayMs });
  const { log, lines } = recordLog();
  const watch = new ExpiryWatch(sectionsOf('a'), log);
  watch.look(sectionsOf('a'));
  watch.close();
  assert.match(lines.join(), /soon \{"key":"tls_cert"/);
});
