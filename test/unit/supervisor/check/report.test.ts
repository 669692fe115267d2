// The text of --check is printed from its findings: faults with their place, and warnings with their server.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exitCodes } from '../../../../src/shared/process/exit-codes.ts';
import {
  exitCodeOf,
  fault,
  formatFaults,
  formatJson,
  formatReport,
  formatVerdict,
  type Place,
  type Report,
  warning,
} from '../../../../src/supervisor/check/report.ts';

const nowhere: Place = { file: '/x.ini', section: null, server: null, key: null, line: null };
const world: Place = { ...nowhere, section: 'world', key: 'port', line: 3 };
const server: Place = { ...nowhere, section: 'world', key: 'host', server: 'db:3306' };
const facts = {
  flavour: 'MySQL',
  version: '9.7',
  role: 'primary',
  needed: 24,
  restart: 46,
  maxConnections: 151,
  maxUserConnections: null,
};
const report: Report = {
  sections: [],
  clients: ['clients of /c.ini', '  client  may'],
  statements: ['statements of /shop.d', '  name  kind'],
  instance: 'it is running',
  servers: [
    { section: 'world', server: 'db:3306', facts, lines: ['server: MySQL 9.7'] },
    { section: 'world', server: 'gone:3306', facts: null, lines: [] },
  ],
  creations: ['CREATE TABLE a (\n  b int\n);'],
  findings: [
    fault(exitCodes.configUnreadable, nowhere, 'cannot read /x.ini: ENOENT'),
    fault(exitCodes.configInvalid, world, 'is empty'),
    fault(exitCodes.configInvalid, { ...nowhere, file: '/k.json' }, 'is no JWK set'),
    fault(exitCodes.configInvalid, { ...nowhere, file: '/k.json', key: 'key 2' }, 'has no `kid`'),
    fault(exitCodes.configInvalid, { ...nowhere, file: '/shop.d/a.sql', line: 7 }, 'is no type'),
    fault(exitCodes.configInvalid, server, 'init_sql is refused'),
    fault(exitCodes.unavailable, server, 'database unreachable: db:3306: ECONNREFUSED'),
    warning(server, 'lower workers or pool'),
    warning({ ...world, key: 'state_dir' }, 'cannot keep the last primary'),
  ],
};

test('a fault names file and key, or section and server, and no address twice', () => {
  assert.deepEqual(formatFaults(report), [
    'dbhttpd: cannot read /x.ini: ENOENT',
    'dbhttpd: /x.ini: [world] port (line 3): is empty',
    'dbhttpd: /k.json: is no JWK set',
    'dbhttpd: /k.json: key 2: has no `kid`',
    'dbhttpd: /shop.d/a.sql: (line 7): is no type',
    'dbhttpd: [world] db:3306: init_sql is refused',
    'dbhttpd: [world] database unreachable: db:3306: ECONNREFUSED',
  ]);
});

test('a warning follows its server, others follow all servers, and statements come last', () => {
  assert.deepEqual(formatReport(report), [
    '',
    'clients of /c.ini',
    '  client  may',
    '',
    'statements of /shop.d',
    '  name  kind',
    '',
    'instance: it is running',
    '',
    '[world] db:3306',
    'server: MySQL 9.7',
    'warning: lower workers or pool',
    '',
    '[world] gone:3306',
    'warning: cannot keep the last primary',
    '',
    'CREATE TABLE a (',
    '  b int',
    ');',
  ]);
});

test('the verdict counts faults and warnings, and names the exit status of the first fault', () => {
  assert.equal(formatVerdict(report), 'verdict: not ok (7 faults, 2 warnings), exit 66');
  assert.equal(exitCodeOf(report), exitCodes.configUnreadable);
  const [warned] = report.findings.filter(({ severity }) => severity === 'warning');
  const sound = { ...report, findings: warned === undefined ? [] : [warned] };
  assert.equal(formatVerdict(sound), 'verdict: ok (no faults, 1 warning)');
  assert.equal(exitCodeOf(sound), 0);
});

test('the JSON has the same findings, and the facts of every server that was reached', () => {
  const entry = { file: '/x.ini', section: 'world', key: 'host', line: null };
  const elsewhere = { file: '/k.json', section: null, line: null };
  assert.deepEqual(JSON.parse(formatJson(report)), {
    ok: false,
    faults: [
      { ...entry, section: null, key: null, message: 'cannot read /x.ini: ENOENT' },
      { ...entry, key: 'port', line: 3, message: 'is empty' },
      { ...elsewhere, key: null, message: 'is no JWK set' },
      { ...elsewhere, key: 'key 2', message: 'has no `kid`' },
      { ...elsewhere, file: '/shop.d/a.sql', key: null, line: 7, message: 'is no type' },
      { ...entry, message: 'db:3306: init_sql is refused' },
      { ...entry, message: 'database unreachable: db:3306: ECONNREFUSED' },
    ],
    warnings: [
      { ...entry, message: 'db:3306: lower workers or pool' },
      { ...entry, key: 'state_dir', line: 3, message: 'cannot keep the last primary' },
    ],
    settings: {},
    server: [
      {
        section: 'world',
        address: 'db:3306',
        flavour: 'MySQL',
        version: '9.7',
        role: 'primary',
      },
    ],
    connections: [
      {
        section: 'world',
        address: 'db:3306',
        needed: 24,
        restart: 46,
        max_connections: 151,
        max_user_connections: null,
      },
    ],
  });
});
