// A request's traceparent: every line about it has its trace, and MySQL gets it with every statement, as a
// query attribute and in no other way.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import {
  describeCreation,
  parseIdempotencyTable,
} from '../../../src/shared/database/idempotency-table.ts';
import type { Options } from '../../support/ask.ts';
import { takesAttributes } from '../../support/database/attributed.ts';
import { closeGate, createGate } from '../../support/database/gate.ts';
import { resultsOf } from '../../support/db-results.ts';
import { eventually } from '../../support/eventually.ts';
import { pipelinedStatements } from '../../support/pipeline.ts';
import { endRequest } from '../../support/reports.ts';
import { useProxiedGateway } from '../../support/use-gateway.ts';

/** A statement that runs for longer has a line in the log. */
const slowMs = 20;

const { gateway, database, proxy } = useProxiedGateway(
  {
    workers: 1,
    pool: 4,
    access_log: 'json',
    log_level: 'debug',
    slow_query: `${slowMs}ms`,
    idempotency_table: 'request_keys',
  },
  {
    prepare: async (prepared) => {
      await prepared.query('create table t (id int primary key, v varchar(60)) engine = innodb');
      await prepared.query(describeCreation(parseIdempotencyTable('request_keys', prepared.name)));
      await createGate(prepared);
    },
  },
);
/** SQL of a statement that is slow. */
const slow = `sleep(${(2 * slowMs) / 1000})`;
/** Tells whether the server can take a trace: MySQL 8.0.23 and later. */
const isReported = () => takesAttributes(database);

let traces = 0;

/** A new trace: the header that a client sends, and the ids to find. */
function createTrace() {
  traces += 1;
  const traceId = `4bf92f3577b34da6a3ce929d${traces.toString(16).padStart(8, '0')}`;
  const traceparent = `00-${traceId}-00f067aa0ba902b7-01`;
  const options: Options = { headers: { traceparent, 'X-Request-ID': `of-${traceId}` } };
  return { traceId, traceparent, options };
}

/** The access log's line of the request of this id. */
const accessLine = (id: string) =>
  eventually(`the line of ${id}`, () =>
    readFileSync(join(gateway.directory, 'log.access.log'), 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .find((line) => line.request_id === id),
  );

/** The log's line of this message about the request of this id. */
const logLine = (message: string, id: string) =>
  eventually(`${message}, of ${id}`, () =>
    gateway
      .log()
      .split('\n')
      .find((line) => line.includes(message) && line.includes(id)),
  );

/** The matching statements that have reached the server since then, each with its trace. */
function sentSince(from: number, matches: RegExp): (readonly [string, string | undefined])[] {
  return proxy.queries
    .slice(from)
    .filter(({ statement }) => matches.test(statement))
    .map(({ statement, attributes }) => [statement, attributes.traceparent]);
}

test('the trace is in the access log and in the line of a slow statement', async () => {
  const { traceId, options } = createTrace();
  const reply = await gateway.db({ SQL: `select ${slow}` }, options);
  assert.equal(reply.status, 200);
  assert.equal((await accessLine(`of-${traceId}`)).trace_id, traceId);
  const line = await logLine('slow statement', `of-${traceId}`);
  assert.match(line, new RegExp(`request_id=of-${traceId} trace_id=${traceId} waited_ms=`));
});

test('the log has it for rejections, for unknown writes, and for replies that were cut', async () => {
  const refused = createTrace();
  assert.equal((await gateway.dbPost({ SQL: 1 }, refused.options)).status, 400);
  assert.match(
    await logLine('a request failed', refused.traceId),
    new RegExp(`request=of-${refused.traceId} trace_id=${refused.traceId} endpoint=db `),
  );
  assert.equal((await accessLine(`of-${refused.traceId}`)).trace_id, refused.traceId);

  const lost = createTrace();
  const rule = proxy.on(/^insert into t values \(1,/, { kind: 'cut-reply', afterBytes: 0 });
  const reply = await gateway.dbPost({ SQL: "insert into t values (1, 'lost')" }, lost.options);
  rule.remove();
  assert.equal(reply.status, 502);
  assert.match(
    await logLine('the outcome of a write is unknown', lost.traceId),
    new RegExp(`outcome=unknown request=of-${lost.traceId} trace_id=${lost.traceId} code=`),
  );

  const cut = createTrace();
  const long = proxy.on(/^select 'cut'/, {
    kind: 'cut-reply',
    afterBytes: 300_000,
    how: 'fin',
  });
  const sql = `select 'cut', repeat('x', 1000) from (${numbers(1000)}) n`;
  await assert.rejects(gateway.dbPost({ SQL: sql }, cut.options));
  long.remove();
  assert.match(
    await logLine('a reply was cut short', cut.traceId),
    new RegExp(`request=of-${cut.traceId} trace_id=${cut.traceId} rows=`),
  );
});

test('running requests have it, and so does the log line of their end', async (t) => {
  const gate = await closeGate(database);
  t.after(gate.open);
  const { traceId, options } = createTrace();
  const reply = gateway.post('/v1/query', { sql: `select ${gate.zero}` }, options);
  const running = await eventually('it runs', async () => {
    const { requests } = (await gateway.get('/v1/requests')).json<{
      requests: { id: string; trace_id: string | null }[];
    }>();
    return requests.find(({ trace_id }) => trace_id === traceId);
  });
  assert.equal((await endRequest(gateway, running.id)).status, 200);
  assert.equal((await reply).status, 504);
  const line = await logLine('an operator ended a request', traceId);
  assert.match(line, new RegExp(`request=of-${traceId} trace_id=${traceId}$`));
});

/** A table of this many rows, on any server. */
function numbers(count: number): string {
  const ten = Array.from({ length: 10 }, (_, n) => `select ${n} as n`).join(' union all ');
  const sets = Array.from({ length: Math.ceil(Math.log10(count)) }, (_, n) => `(${ten}) n${n}`);
  return `select 1 from ${sets.join(', ')}`;
}

test('without a valid traceparent a request runs as ever, and its lines name no trace', async () => {
  const { traceparent, traceId } = createTrace();
  const others = ['', 'secret', traceparent.toUpperCase(), `${traceparent}, ${traceparent}`];
  for (const [n, given] of [undefined, ...others].entries()) {
    const from = proxy.queries.length;
    const headers = {
      'X-Request-ID': `none-${n}`,
      ...(given !== undefined && { traceparent: given }),
    };
    const sql = `select ${slow}, 'none-${n}'`;
    const reply = await gateway.post('/v1/query', { sql }, { headers });
    assert.equal(reply.status, 200, reply.text);
    assert.equal((await accessLine(`none-${n}`)).trace_id, null);
    assert.doesNotMatch(await logLine('slow statement', `none-${n}`), /trace/);
    assert.deepEqual(sentSince(from, /none-/), [[sql, undefined]]);
  }
  assert.doesNotMatch(gateway.log(), new RegExp(`secret|${traceId}`, 'i'));
});

test('each statement of a request takes its traceparent along, on every endpoint, and none of another request', async () => {
  const ask: Readonly<
    Record<string, (mark: string, options: Options) => Promise<{ status: number }>>
  > = {
    'GET /db': (mark, options) => gateway.db({ SQL: `select '${mark}'` }, options),
    'POST /db, several': (mark, options) =>
      gateway.dbPost({ SQL: `select '${mark}'; select '${mark} again'` }, options),
    '/v1/query': (mark, options) => gateway.post('/v1/query', { sql: `select '${mark}'` }, options),
    'QUERY /v1/query': (mark, options) =>
      gateway.post('/v1/query', { sql: `select '${mark}'` }, { ...options, method: 'QUERY' }),
    '/v1/query, undone': (mark, options) =>
      gateway.post(
        '/v1/query',
        { sql: `delete from t where v = '${mark}'`, dry_run: true },
        options,
      ),
    '/v1/batch': (mark, options) => {
      const statements = [
        { sql: `select '${mark}'`, expect: { row_count: 1 } },
        { sql: `delete from t where v = '${mark}'` },
      ];
      return gateway.post('/v1/batch', { statements }, options);
    },
    '/v1/batch with a key': (mark, options) => {
      const statements = [{ sql: `delete from t where v = '${mark}'` }];
      const headers = { ...options.headers, 'Idempotency-Key': mark.replaceAll(' ', '-') };
      return gateway.post('/v1/batch', { statements }, { ...options, headers });
    },
  };
  for (const [endpoint, send] of Object.entries(ask)) {
    const { traceId, traceparent, options } = createTrace();
    const from = proxy.queries.length;
    const reply = await send(`of ${traceId}`, options);
    assert.equal(reply.status, 200, endpoint);
    const own = sentSince(from, new RegExp(traceId));
    assert.ok(own.length > 0, endpoint);
    for (const [, reported] of own)
      assert.equal(reported, isReported() ? traceparent : undefined, endpoint);
    const begin = endpoint.endsWith('key')
      ? /^SELECT 9223372036854775807 /
      : /^(select|delete|ROLLBACK)/;
    for (const [statement] of own) assert.match(statement, begin);
    if (endpoint.includes('batch')) {
      assert.deepEqual(sentSince(from, /^COMMIT$/), [
        ['COMMIT', isReported() ? traceparent : undefined],
      ]);
    }
    const { status } = await send(`after ${endpoint}`, {});
    assert.equal(status, 200);
    const after = sentSince(from, /after /);
    assert.ok(after.length > 0 && after.every(([, reported]) => reported === undefined), endpoint);
  }
});

test('reads that are written together have their own traces', async () => {
  await database.query("insert into t values (7, 'seven')");
  let attempts = 0;
  await eventually(
    'several are written together',
    async () => {
      attempts += 1;
      // The pipeline leaves a shape out that was slow, for longer each time: on a busy machine another shape is tried then. Digits make none.
      const name = 'a'.repeat(Math.ceil(attempts / 8));
      const sql = (n: number) => `select v, ${n} as ${name} from t where id = 7`;
      const before = await pipelinedStatements(gateway);
      const from = proxy.queries.length;
      const own = Array.from({ length: 8 }, (_, n) => (n % 4 === 3 ? null : createTrace()));
      const replies = await Promise.all(
        own.map((trace, n) => gateway.dbPost({ SQL: sql(n) }, trace?.options)),
      );
      for (const [n, reply] of replies.entries()) {
        assert.deepEqual(resultsOf(reply)[0]?.ROWS, [['seven', n]]);
      }
      const reported = new Map(sentSince(from, /where id = 7/));
      for (const [n, trace] of own.entries()) {
        assert.equal(reported.get(sql(n)), isReported() ? trace?.traceparent : undefined);
      }
      return (await pipelinedStatements(gateway)) >= before + 2;
    },
    { timeoutMs: 120_000 },
  );
});

test('MySQL reads the whole of it, in each statement of a request', async (t) => {
  if (!isReported()) {
    t.skip(`${database.flavour} ${database.version} has no query attributes`);
    return;
  }
  const wasThere = await database.query(
    "select 1 from mysql.component where component_urn like '%query_attributes'",
  );
  const problem = await installComponent(wasThere.length > 0);
  if (problem !== null) {
    t.skip(`the component that reads query attributes cannot be installed: ${problem}`);
    return;
  }
  try {
    const { traceparent, options } = createTrace();
    const sql = "select mysql_query_attribute_string('traceparent')";
    const several = await gateway.dbPost({ SQL: `${sql}; ${sql}` }, options);
    assert.deepEqual(
      resultsOf(several).map(({ ROWS }) => ROWS),
      [[[traceparent]], [[traceparent]]],
    );
    const readOnly = await gateway.dbPost({ SQL: sql, READ_ONLY: true }, options);
    assert.deepEqual(resultsOf(readOnly)[0]?.ROWS, [[traceparent]]);
    const statements = [
      { sql },
      { sql: `insert into t ${sql.replace('select', 'select 9,')}` },
      { sql },
    ];
    const batch = await gateway.post('/v1/batch', { statements }, options);
    const { results } = batch.json<{ results: readonly { rows?: unknown }[] }>();
    assert.deepEqual([results[0]?.rows, results[2]?.rows], [[[traceparent]], [[traceparent]]]);
    const rows = await database.query('select v from t where id = 9');
    assert.equal(rows[0]?.v, traceparent);
    assert.deepEqual(resultsOf(await gateway.dbPost({ SQL: sql }))[0]?.ROWS, [[null]]);
  } finally {
    if (wasThere.length === 0) {
      await database.query('uninstall component "file://component_query_attributes"');
    }
  }
});

/** Null: it is installed. */
async function installComponent(isThere: boolean): Promise<string | null> {
  if (isThere) return null;
  try {
    await database.query('install component "file://component_query_attributes"');
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}
