// The text of --check is printed from its findings: faults with their place, and warnings with their server.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exitCodes } from '../../../../src/shared/process/exit-codes.ts';
import {
  fault,
  formatFaults,
  formatReport,
  type Place,
  type Report,
  warning,
} from '../../../../src/supervisor/check/report.ts';

const nowhere: Place = { file: '/x.ini', section: null, server: null, key: null, line: null };
const world: Place = { ...nowhere, section: 'world', key: 'port', line: 3 };
const server: Place = { ...nowhere, section: 'world', key: 'host', server: 'db:3306' };
const report: Report = {
  sections: [],
  clients: ['clients of /c.ini', '  client  may'],
  instance: 'it is running',
  servers: [{ section: 'world', server: 'db:3306', lines: ['server: MySQL 9.7'] }],
  creations: ['CREATE TABLE a (\n  b int\n);'],
  findings: [
    fault(exitCodes.configUnreadable, nowhere, 'cannot read /x.ini: ENOENT'),
    fault(exitCodes.configInvalid, world, 'is empty'),
    fault(exitCodes.configInvalid, { ...nowhere, file: '/k.json' }, 'is no JWK set'),
    fault(exitCodes.configInvalid, { ...nowhere, file: '/k.json', key: 'key 2' }, 'has no `kid`'),
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
    'instance: it is running',
    '',
    '[world] db:3306',
    'server: MySQL 9.7',
    'warning: lower workers or pool',
    'warning: cannot keep the last primary',
    '',
    'CREATE TABLE a (',
    '  b int',
    ');',
  ]);
});
