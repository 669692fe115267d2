// Hundreds of writes under cuts, resets and crashes of the server: the replies agree with the table.
// scripts/soak explore repeats it with other seeds.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import {
  type ProxiedDatabase,
  startProxiedDatabase,
} from '../../support/database/proxied-database.ts';
import { cellOf } from '../../support/db-results.ts';
import { eventually } from '../../support/eventually.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import {
  type Crew,
  createActorRandom,
  makeHistory,
  several,
} from '../../support/histories/crew.ts';
import {
  contradictions,
  type Reported,
  reportedBy,
  summary,
} from '../../support/histories/history.ts';
import { boundStalls, drawEnd, drawFault } from '../../support/histories/line-faults.ts';
import { fetchCounts, waitUntilIdle } from '../../support/histories/server-look.ts';
import { seed } from '../../support/property.ts';

const writes = 300;
const clients = 12;
/** The deadline of a write whose answer is lost. The writes wait for it. */
const deadline = '1s';
/** At this interval, one write loses its answer, and another loses its connection after the server has it: known outcomes for any seed. */
const everyDrop = 40;
const everyCut = 8;
const drawnShare = 0.25;
const everyCutAll = 90;
/** The server crashes twice. */
const everyCrash = 150;

const isOwn = process.env.DBHTTPD_TEST_MYSQL === undefined;

/** The fault depends on the seed and the id alone. */
function faultOf(id: number) {
  if (id % everyDrop === 1) return { kind: 'drop-reply' } as const;
  if (id % everyCut === 2) return { kind: 'cut-after-request' } as const;
  const random = createActorRandom(seed, `write ${id}`);
  return random() < drawnShare ? drawFault(random) : null;
}

type Stage = {
  readonly database: Database;
  readonly proxy: ProxiedDatabase;
  readonly gateway: Gateway;
};

const serves = async (gateway: Gateway) => cellOf(await gateway.dbPost({ SQL: 'select 5' })) === 5;

async function play({ database, proxy, gateway }: Stage, crew: Crew) {
  const history = new Map<number, Reported>();
  let lastId = 0;
  let crashes = 0;
  const write = async (id: number) => {
    const sql = `insert into t values (${id})`;
    const fault = faultOf(id);
    const rule = fault === null ? null : proxy.on((text) => text === sql, fault);
    const reply = id % 2 === 0 ? gateway.dbPost({ SQL: sql }) : gateway.db({ SQL: sql });
    history.set(id, reportedBy(await reply));
    rule?.remove();
    // While the database is away every write would be refused at once, and none be left for when it is back.
    if (history.get(id) === 'not_executed')
      await eventually('service is back', () => serves(gateway));
  };
  await crew.work(
    several('client', clients, async ({ note }) => {
      while (lastId < writes && !crew.isOver) {
        lastId += 1;
        const id = lastId;
        note(`write ${id}`);
        await write(id);
        if (id % everyCutAll === 45) proxy.cutAll(drawEnd(createActorRandom(seed, `cut ${id}`)));
        if (isOwn && id % everyCrash === 100) {
          note(`crash after write ${id}`);
          crashes += 1;
          await database.halt('SIGKILL');
          await database.resume();
        }
      }
    }),
  );
  return { history, crashes };
}

test('200 means one row, not_executed none, unknown none or one, and nothing twice', async (t) => {
  await makeHistory({ name: 'writes', seed }, async (crew) => {
    const database = await crew.start('a database', startDatabase({ own: isOwn }));
    // No unique key: what is written twice shows as two rows.
    await database.query('create table t (id int, index (id)) engine = InnoDB');
    const proxy = await crew.start('a proxy', startProxiedDatabase(database));
    const settings = { workers: 1, pool: 8, statement_timeout: deadline };
    const starting = startGateway({ database: proxy.target, settings });
    const gateway = await crew.start('a gateway', starting);
    const unbound = boundStalls(proxy);
    const { history, crashes } = await play({ database, proxy, gateway }, crew).finally(unbound);
    crew.note('looks at the table');
    assert.equal(history.size, writes);
    await waitUntilIdle(database);
    const rows = await fetchCounts(database, 'select id, count(*) as n from t group by id');
    assert.deepEqual(contradictions(history, rows), []);
    const reported = summary(history);
    t.diagnostic(`${JSON.stringify(reported)}, ${crashes} crashes`);
    const least = writes / everyCut / 2;
    assert.ok(reported.applied > least && reported.unknown > least, JSON.stringify(reported));
    await eventually('service is back', () => serves(gateway));
  });
});

test('the judge sees a lie', () => {
  const history = new Map<number, Reported>([
    [1, 'applied'],
    [2, 'not_executed'],
    [3, 'unknown'],
    [4, 'refused'],
  ]);
  const honest = new Map([
    [1, 1],
    [3, 1],
  ]);
  assert.deepEqual(contradictions(history, honest), []);
  for (const lie of [
    new Map(),
    new Map([[1, 2]]),
    new Map([...honest, [2, 1]]),
    new Map([...honest, [3, 2]]),
    new Map([...honest, [4, 1]]),
    new Map([...honest, [5, 1]]),
  ]) {
    assert.equal(contradictions(history, lie).length, 1);
  }
});
