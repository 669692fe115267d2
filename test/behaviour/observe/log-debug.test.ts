// With log_level = debug the log explains what the gateway does: connections, kills, resets, readings, refusals. At info it has none of
// that.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Ask } from '../../support/ask.ts';
import type { Database } from '../../support/database/mariadb.ts';
import { cellOf } from '../../support/db-results.ts';
import { eventually } from '../../support/eventually.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { exchange } from '../../support/http.ts';
import { useDatabase } from '../../support/use-gateway.ts';

const database = useDatabase();
const secret = 'a-literal-of-the-tests';

/** Waits for a line of the log, and resolves to its content. */
type Find = (what: string, line: RegExp) => Promise<string>;

/** All that goes wrong in one night; `find` gets what the log must have by then. */
async function live(gateway: Gateway, database: Database, find: Find): Promise<void> {
  await gateway.get('/readyz');
  await find('readiness', /readiness changed from=STARTING to=READY$/m);
  await find('the control connection', /the control connection was opened connection=\d+$/m);
  await find(
    'the tables',
    /the tables were read count=\d+ took_ms=\d+ outdated=false connection=\d+$/m,
  );

  await killSlow(gateway, find);
  await loseSession(gateway, database, find);

  const refused = await exchange(gateway.port, `GET /db?${secret} HTTP/9\r\n\r\n`);
  const id = refused.header('x-request-id');
  await find(
    'what was no HTTP',
    new RegExp(
      `rejected request=${id} address=127\\.0\\.0\\.1 status=400 code=BAD_REQUEST reason="`,
    ),
  );
  await gateway.dbPost({ SQL: 3 }, { headers: { 'X-Request-ID': 'no-sql' } });
  await find('a refusal', /a request failed request=no-sql endpoint=db status=400 code=\w+$/m);

  await failReset(gateway, database, find);
}

async function killSlow(gateway: Ask, find: Find): Promise<void> {
  const headers = { 'X-Request-ID': 'slow' };
  // A session is open already, so the deadline passes while the statement runs, and not while it waits.
  assert.equal((await gateway.dbPost({ SQL: 'select 1' })).status, 200);
  const SQL = `select sleep(30), '${secret}'`;
  assert.equal((await gateway.dbPost({ SQL, TIMEOUT: 2_000 }, { headers })).status, 504);
  await find('a kill', /KILL QUERY was sent connection=\d+ confirmed=true took_ms=\d+$/m);
  await find(
    'its request',
    /a request failed request=slow endpoint=db status=504 code=DEADLINE_RUNNING$/m,
  );
}

async function loseSession(gateway: Ask, database: Database, find: Find): Promise<void> {
  const own = String(cellOf(await gateway.dbPost({ SQL: 'select connection_id()' })));
  await find(
    'its session',
    new RegExp(`a session was opened connection=${own} took_ms=\\d+$`, 'm'),
  );
  await database.query(`kill ${own}`);
  await find('its end', new RegExp(`a session was lost connection=${own} error=.+ was_lent=`));
}

/** A setting of the session depends on something that is removed. */
async function failReset(gateway: Ask, database: Database, find: Find): Promise<void> {
  assert.equal((await gateway.dbPost({ SQL: 'select 1' })).status, 200);
  await database.query('drop table needed');
  await gateway.dbPost({ SQL: 'set @left = 1' });
  await find(
    'a reset',
    /a session could not be reset connection=\d+ took_ms=\d+ error="errno 1146"$/m,
  );
  await gateway.dbPost({ SQL: 'select 1' });
  await find('an attempt', /an attempt to connect failed by=pool attempt=\d+ errno=1146 reason="/);
}

for (const level of ['debug', 'info'] as const) {
  test(`log_level = ${level} explains ${level === 'debug' ? 'everything' : 'nothing'}`, async (t) => {
    await database.query('drop table if exists needed; create table needed (a int)');
    const gateway = await startGateway({
      database,
      settings: {
        workers: 1,
        pool: 1,
        log_level: level,
        init_sql: 'set @known = (select count(*) from needed)',
      },
    });
    t.after(() => gateway.stop());
    await live(gateway, database, async (what, line) => {
      if (level !== 'debug') return '';
      return eventually(what, () => line.exec(gateway.log())?.[0]);
    });
    const log = gateway.log();
    assert.equal(/ debug \[/.test(log), level === 'debug');
    for (const hidden of [secret, database.password]) {
      assert.ok(!log.includes(hidden), hidden);
    }
  });
}
