// Alerts, dashboard and runbook name only what the gateway reports, and promtool accepts the files for Prometheus.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { type TestContext, test } from 'node:test';
import { failureCodes, outcomes, unreadyCodes } from '../../../../src/shared/failure-codes.ts';
import {
  type Definition,
  supervisorMetrics,
  timedPhases,
  workerMetrics,
} from '../../../../src/shared/observe/metrics.ts';
import {
  alertsPath,
  dashboardPath,
  findNamings,
  type Naming,
  readAlerts,
  readDashboard,
  readDashboardExpressions,
  runbookPath,
  settingsPath,
} from '../../../support/deployed-watching.ts';
import { hasPrometheus, promtool } from '../../../support/prometheus.ts';

const table: Readonly<Record<string, Definition>> = { ...workerMetrics, ...supervisorMetrics };
/** Prometheus adds the first two, the supervisor the others. */
const everywhere = ['job', 'instance', 'section', 'slot'];
const known: Readonly<Record<string, readonly string[]>> = {
  outcome: outcomes,
  code: failureCodes,
  reason: unreadyCodes,
  phase: timedPhases,
  role: ['primary', 'replica', 'unusable'],
  state: ['idle', 'busy', 'resetting', 'connecting'],
  result: ['ok', 'failed'],
};

/** The values of a label; undefined: any. A tool that fails has a result, which is an error. */
function valuesOf(name: string, label: string): readonly string[] | undefined {
  const isOfTools = name === 'dbhttpd_tool_calls_total' && label === 'result';
  return isOfTools ? ['ok', 'error'] : known[label];
}

/** The fault of a name; null: none. */
function faultOf({ name, labels }: Naming): string | null {
  const base = name.replace(/_(bucket|sum|count)$/, '');
  const definition = table[name] ?? table[base];
  if (definition === undefined) return `there is no ${name}`;
  const isHistogram = definition.type === 'histogram';
  if (isHistogram === (table[name] !== undefined)) return `${name} has no such series`;
  for (const [label, values] of Object.entries(labels)) {
    if (label === 'le' && name.endsWith('_bucket')) continue;
    if (!everywhere.includes(label) && !definition.labels.includes(label))
      return `${name} has no label ${label}`;
    const strange = values.find((value) => valuesOf(name, label)?.includes(value) === false);
    if (strange !== undefined) return `${label} is never ${strange}`;
  }
  return null;
}

const faultsIn = (text: string) =>
  findNamings(text).flatMap((naming) => {
    const fault = faultOf(naming);
    return fault === null ? [] : [fault];
  });

test('finds a name, a label or a value that the gateway does not report', () => {
  assert.deepEqual(
    faultsIn(
      'dbhttpd_rows dbhttpd_rows_total dbhttpd_request_duration_seconds dbhttpd_request_duration_seconds_sum',
    ),
    ['there is no dbhttpd_rows', 'dbhttpd_request_duration_seconds has no such series'],
  );
  assert.deepEqual(
    faultsIn('dbhttpd_outcomes_total{outcome=~"ok|well"} dbhttpd_rows_total{status="1", slot="0"}'),
    ['outcome is never well', 'dbhttpd_rows_total has no label status'],
  );
});

for (const path of [alertsPath, runbookPath]) {
  test(`${path} names metrics that exist`, () => {
    const text = readFileSync(path, 'utf8').replaceAll('{reason=…}', '');
    assert.ok(findNamings(text).length > 10);
    assert.deepEqual(faultsIn(text), []);
  });
}

test(`${dashboardPath} names metrics that exist`, () => {
  const { templating } = readDashboard();
  const queries = templating.list.map(({ definition = '' }) => definition);
  const expressions = readDashboardExpressions('1m').map((one) => one.replaceAll('".*"', '""'));
  assert.ok(expressions.length > 50);
  assert.deepEqual([...expressions, ...queries].flatMap(faultsIn), []);
});

test('every alert has its severity and its section of the runbook, and every section its alert', () => {
  const alerts = readAlerts();
  const text = readFileSync(runbookPath, 'utf8');
  const sections = [...text.matchAll(/^## (\w+)$/gm)].map(([, name]) => name);
  assert.ok(alerts.length > 20);
  assert.deepEqual(
    sections,
    alerts.map(({ name }) => name),
  );
  for (const { name, severity, runbook, expression } of alerts) {
    assert.ok(expression !== '', name);
    assert.ok(['critical', 'warning'].includes(severity), name);
    assert.equal(runbook, `${runbookPath}#${name.toLowerCase()}`);
  }
  for (const section of text.split(/^## /m).slice(1)) {
    for (const part of ['**Means:**', '**Look at:**', '**Do:**'])
      assert.ok(section.includes(part), section);
  }
});

test('the panels of the dashboard do not overlap, and use the chosen source', () => {
  const { panels } = readDashboard();
  assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
  const taken = new Set<string>();
  for (const { title, type, gridPos, datasource, targets = [] } of panels) {
    const { x, y, w, h } = gridPos;
    assert.ok(x + w <= 24, title);
    for (let row = y; row < y + h; row += 1) {
      for (let column = x; column < x + w; column += 1) {
        const place = `${row}:${column}`;
        assert.ok(!taken.has(place), `${title} lies on another panel`);
        taken.add(place);
      }
    }
    if (type === 'row') continue;
    assert.ok(targets.length > 0, title);
    const sources = [datasource?.uid, ...targets.map((target) => target.datasource.uid)];
    assert.ok(
      sources.every((uid) => uid === '$datasource'),
      title,
    );
  }
});

/** Prints what is missing. */
function needsPrometheus(t: TestContext): boolean {
  if (!hasPrometheus()) t.skip('prometheus is not here: scripts/test unpacks it');
  return hasPrometheus();
}

test('promtool accepts the alerts, and finds that each fires when it should and no other one does', (t) => {
  if (!needsPrometheus(t)) return;
  for (const args of [
    ['check', 'rules', '--lint=all', '--lint-fatal', alertsPath],
    ['test', 'rules', 'test/prometheus/alerts.test.yml'],
  ]) {
    const { ok, said } = promtool(args);
    assert.ok(ok, said);
  }
  const tried = readFileSync('test/prometheus/alerts.test.yml', 'utf8');
  for (const { name } of readAlerts()) assert.ok(tried.includes(`alertname="${name}"`), name);
});

test('promtool accepts the settings of Prometheus', (t) => {
  if (!needsPrometheus(t)) return;
  const directory = mkdtempSync(join(tmpdir(), 'dbhttpd-watching-'));
  t.after(() => rmSync(directory, { recursive: true }));
  writeFileSync(join(directory, 'token'), 'a token');
  const text = readFileSync(settingsPath, 'utf8')
    .replace('/etc/prometheus/dbhttpd-alerts.yml', resolve(alertsPath))
    .replace('/etc/prometheus/dbhttpd-token', join(directory, 'token'));
  writeFileSync(join(directory, 'prometheus.yml'), text);
  const { ok, said } = promtool(['check', 'config', join(directory, 'prometheus.yml')]);
  assert.ok(ok, said);
});
