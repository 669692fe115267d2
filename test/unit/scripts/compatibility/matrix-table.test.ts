// How scripts/matrix reads the runner's output, and the table that it prints. Runs no tests.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { renderMatrix } from '../../../../scripts/compatibility/table.ts';
import { readFailure, readTap } from '../../../../scripts/compatibility/tap.ts';

const output = `TAP version 13
# Subtest: keeps its word
ok 1 - keeps its word
  ---
  duration_ms: 1
  ...
# Subtest: breaks it
    # Subtest: here
    not ok 1 - here
      ---
      duration_ms: 1
      location: '/somewhere/dist/test/behaviour/pipeline.test.js:3:1'
      ...
    1..1
not ok 2 - breaks it
  ---
  duration_ms: 1
  location: '/somewhere/dist/test/behaviour/pipeline.test.js:1:1'
  ...
# Subtest: cannot be tried
ok 3 - cannot be tried # SKIP no disk
  ---
  duration_ms: 1
  ...
1..3
# tests 5
# suites 0
# pass 1
# fail 2
# cancelled 1
# skipped 1
# todo 0
# duration_ms 10
`;

test("reads the runner's own counts, the names of failures with their files, the reasons of skips", () => {
  assert.deepEqual(readTap(output), {
    passed: 1,
    failed: 3,
    skipped: 1,
    failures: [
      'here (test/behaviour/pipeline.test.ts)',
      'breaks it (test/behaviour/pipeline.test.ts)',
    ],
    skips: ['cannot be tried: no disk'],
  });
  assert.equal(readFailure('not ok 2 - breaks it'), 'breaks it');
  assert.equal(readFailure('ok 1 - keeps its word'), null);
});

test('an output without closing counts is no run that came to its end', () => {
  assert.equal(readTap(output.slice(0, output.indexOf('# tests'))), null);
});

test('prints a place for each combination, the failures, and the sum', () => {
  const good = { passed: 2, failed: 0, skipped: 0, failures: [], skips: [] };
  const bad = { ...good, failed: 1, failures: ['breaks it (a.test.ts)'] };
  const text = renderMatrix([
    { server: 'MySQL 9.7.4', node: 'Node 20.20.2', tally: bad },
    { server: 'MariaDB 11.8.6', node: 'Node 24.1.0', tally: good },
  ]);
  assert.equal(
    text,
    `passed / failed / skipped   Node 20.20.2   Node 24.1.0
MySQL 9.7.4                 2 / 1 / 0
MariaDB 11.8.6                             2 / 0 / 0

failed: MySQL 9.7.4, Node 20.20.2
  breaks it (a.test.ts)

4 passed, 1 failed, 0 skipped`,
  );
});
