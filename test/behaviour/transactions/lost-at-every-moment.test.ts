// Transactions that clients hold, lost at every moment of their life by everything that may end them: nothing of one ever runs outside of it,
//its replies are right, and ROLLBACK succeeds except after a COMMIT without an answer.
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { Agent } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { Connection, RowDataPacket } from 'mysql2/promise';
import { type Database, ownServerOnly, startDatabase } from '../../support/database/mariadb.ts';
import {
  type ProxiedDatabase,
  startProxiedDatabase,
} from '../../support/database/proxied-database.ts';
import { driverSettings } from '../../support/driver.ts';
import { eventually } from '../../support/eventually.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { gone, isStopped, signal } from '../../support/processes.ts';
import { readMetric } from '../../support/scrape.ts';
import {
  type Door,
  doors,
  type Reported,
  type TransactionClient,
} from './support/transaction-doors.ts';

/** The request in flight when the fault strikes, and where the line to the database stops it. */
const moments = {
  'BEGIN is on its way': { step: 'BEGIN', at: /^ROLLBACK\n;START TRANSACTION/, kept: 'hold' },
  'BEGIN is done, its answer on its way': {
    step: 'BEGIN',
    at: /^ROLLBACK\n;START TRANSACTION/,
    kept: 'stall',
  },
  'between two statements': { step: null },
  'a statement is on its way': { step: 'statement', at: /, 2\)$/, kept: 'hold' },
  'a statement is done, its answer on its way': { step: 'statement', at: /, 2\)$/, kept: 'stall' },
  'a statement is being executed': { step: 'sleep' },
  'COMMIT is prepared, and not sent': { step: 'COMMIT', at: /^RELEASE SAVEPOINT/, kept: 'hold' },
  'COMMIT is on its way': { step: 'COMMIT', at: /^COMMIT$/, kept: 'hold' },
  'COMMIT is done, its answer on its way': { step: 'COMMIT', at: /^COMMIT$/, kept: 'stall' },
} as const satisfies Record<string, { step: Step; at?: RegExp; kept?: 'hold' | 'stall' }>;

type Step = 'BEGIN' | 'statement' | 'sleep' | 'COMMIT' | null;
type Moment = keyof typeof moments;

/** The reply to a client that goes on. */
type Next = {
  readonly statement: Reported;
  readonly commit: Reported;
  readonly rollback: Reported;
};

/** The replies to a transaction, and the numbers of its statements that remain. */
type Cell = {
  /** The reply to the request in flight; null: none is in flight. */
  readonly reported: Reported | null;
  /** The reply to each later request; null: no client can send one. */
  readonly next: Next | null;
  readonly stands: readonly number[];
};

type Cells = Partial<Readonly<Record<Moment, Cell>>>;

const ended = '409 TRANSACTION_ENDED not_executed';
const lost = '502 CONNECTION_LOST unknown';
const unreachable = '503 DATABASE_UNREACHABLE not_executed';
const tooLate = '504 DEADLINE_RUNNING';

const over: Next = { statement: ended, commit: ended, rollback: 'rolled back' };
const unknown: Next = { statement: ended, commit: lost, rollback: lost };
const committed: Next = { statement: ended, commit: 'committed', rollback: 'committed' };
/** It goes on, and is committed. */
const open: Next = { statement: 'done', commit: 'committed', rollback: 'committed' };

const neverBegun = (reported: Reported): Cell => ({ reported, next: null, stands: [] });
const isOver = (reported: Reported | null): Cell => ({ reported, next: over, stands: [] });
const isUnknown = (reported: Reported, stands: readonly number[]): Cell => ({
  reported,
  next: unknown,
  stands,
});
const isCommitted: Cell = { reported: 'committed', next: committed, stands: [1] };
const goesOn = (reported: Reported, ...stands: readonly number[]): Cell => ({
  reported,
  next: open,
  stands,
});

/** The worker that would answer is dead: requests in flight have no reply. */
const whoAnsweredDied: Cells = {
  'BEGIN is on its way': neverBegun('cut'),
  'BEGIN is done, its answer on its way': neverBegun('cut'),
  'between two statements': isOver(null),
  'a statement is on its way': isOver('cut'),
  'a statement is done, its answer on its way': isOver('cut'),
  'COMMIT is prepared, and not sent': isOver('cut'),
  'COMMIT is on its way': isUnknown('cut', []),
  'COMMIT is done, its answer on its way': isUnknown('cut', [1]),
};

let database: Database;
let proxy: ProxiedDatabase;
let gateway: Gateway;
let directory: string;
const lasting = {
  transaction_idle_timeout: '120s',
  transaction_timeout: '240s',
  statement_timeout: '120s',
};

const start = (more: object = {}) =>
  startGateway({
    database: proxy.target,
    settings: {
      ...driverSettings,
      ...lasting,
      workers: 2,
      pool: 40,
      pidfile: join(directory, 'gateway.pid'),
      ...more,
    },
  });

before(async () => {
  directory = mkdtempSync(join(tmpdir(), 'lost-'));
  database = await startDatabase({ own: true });
  await database.query(
    'create table notes (id int auto_increment primary key, who int not null, n int not null) engine = innodb',
  );
  proxy = await startProxiedDatabase(database);
  gateway = await start();
});
after(async () => {
  await gateway?.stop();
  await proxy?.stop();
  await database?.stop();
  rmSync(directory, { recursive: true, force: true });
});

/** One cell, by one door, as the test plays it. */
type Played = {
  readonly name: string;
  readonly who: number;
  readonly door: Door;
  readonly moment: Moment;
  readonly cell: Cell;
  readonly client: TransactionClient;
};

/** The requests in flight, and their replies. */
type UnderWay = ReadonlyMap<Played, Promise<Reported>>;

/** A gateway that loses transactions. Two of them may use one database. */
type Stage = {
  readonly gateway: Pick<Gateway, 'url'>;
  readonly proxy: ProxiedDatabase;
  /** The connections for the requests in flight; missing: new ones. */
  readonly via?: (count: number) => Promise<Agent>;
  /** Strikes, and resolves when clients may go on. @param underWay the reply to clients that wait */
  readonly strike: (underWay: UnderWay) => Promise<void>;
};

let clients = 0;
/** The rows that must be there in the end, and no others, whatever is requested or comes late. */
const standing: (readonly [who: number, n: number])[] = [];

const insert = ({ who }: Played, n: number) => `insert into notes (who, n) values (${who}, ${n})`;
const sleep = ({ who }: Played) => `insert into notes (who, n) select ${who}, 2 + sleep(20)`;

async function rowsOf(who: number, eye: Connection): Promise<readonly number[]> {
  const [rows] = await eye.query<RowDataPacket[]>('select n from notes where who = ? order by n', [
    who,
  ]);
  return rows.map(({ n }) => Number(n));
}

/** Gives `work` one connection to look at the database: many looks would be as many connections. */
async function looking<Result>(work: (eye: Connection) => Promise<Result>): Promise<Result> {
  const eye = await database.connect();
  eye.on('error', () => undefined);
  try {
    return await work(eye);
  } finally {
    eye.destroy();
  }
}

/** Loses a transaction of each moment by each door together, and continues with all of them. */
async function lose(stage: Stage, cells: Cells): Promise<void> {
  const all = Object.entries(cells).flatMap(([moment, cell]) =>
    doors.map((door): Played => {
      clients += 1;
      const client = door.open(stage.gateway);
      const name = `${door.name}: ${moment}`;
      return { name, who: clients, door, moment: moment as Moment, cell, client };
    }),
  );
  const { via } = stage;
  if (via !== undefined) await Promise.all(all.map(prepare));
  const agent = await via?.(all.length);
  const underWay = new Map<Played, Promise<Reported>>();
  await looking(async (eye) => {
    for (const played of all) {
      // If time matters, none waits for the others.
      if (via === undefined) await prepare(played);
      await arrive(stage.proxy, played, eye, agent, underWay);
    }
  });
  await stage.strike(underWay);
  const seen = await looking((eye) =>
    Promise.all(
      all.map(async (played) => {
        const reported = (await underWay.get(played)) ?? null;
        const next = played.cell.next === null ? null : await goOn(played);
        return [played.name, { reported, next, stands: await rowsOf(played.who, eye) }] as const;
      }),
    ),
  );
  agent?.destroy();
  const expected = all.map(({ name, cell, door }) => [name, seenBy(door, cell)] as const);
  assert.deepEqual(Object.fromEntries(seen), Object.fromEntries(expected));
  for (const { who, cell } of all) standing.push(...cell.stands.map((n) => [who, n] as const));
}

function seenBy({ rollbackReported }: Door, cell: Cell): Cell {
  if (cell.next === null) return cell;
  return { ...cell, next: { ...cell.next, rollback: rollbackReported(cell.next.rollback) } };
}

async function prepare(played: Played): Promise<void> {
  const { client, moment } = played;
  if (moments[moment].step === 'BEGIN') return;
  assert.equal(await client.begin(), 'begun');
  assert.equal(await client.run(insert(played, 1)), 'done');
}

/** Brings a transaction to its moment, and notes what is under way then. */
async function arrive(
  through: ProxiedDatabase,
  played: Played,
  eye: Connection,
  via: Agent | undefined,
  underWay: Map<Played, Promise<Reported>>,
): Promise<void> {
  const { step, ...kept } = moments[played.moment];
  if (step === null) return;
  if ('at' in kept) {
    const rule = through.on(kept.at, { kind: kept.kept }, { times: 1 });
    underWay.set(played, take(played, step, via));
    await eventually(played.name, () => rule.hits() === 1);
    if (kept.kept === 'stall')
      await eventually(`it is done: ${played.name}`, () => isDone(played, eye));
    return;
  }
  underWay.set(played, take(played, step, via));
  await eventually(played.name, async () => {
    const running = 'select 1 from information_schema.processlist where info = ?';
    const [rows] = await eye.query<RowDataPacket[]>(running, [sleep(played)]);
    return rows.length === 1;
  });
}

function take(played: Played, step: Step, via: Agent | undefined): Promise<Reported> {
  const { client } = played;
  switch (step) {
    case 'BEGIN':
      return client.begin();
    case 'statement':
      return client.run(insert(played, 2), via);
    case 'sleep':
      return client.run(sleep(played), via);
    default:
      return client.commit(via);
  }
}

/** Resolves to whether the server has executed the request in flight. A BEGIN leaves no visible trace. */
async function isDone(played: Played, eye: Connection): Promise<boolean> {
  const { step } = moments[played.moment];
  if (step === 'BEGIN') return true;
  if (step === 'COMMIT') return (await rowsOf(played.who, eye)).length === 1;
  // For the next transaction alone, which is this look.
  await eye.query('set transaction isolation level read uncommitted');
  return (await rowsOf(played.who, eye)).length === 2;
}

/** Asks again, like a client that does not believe the reply. The second reply is the same. */
async function goOn(played: Played): Promise<Next> {
  const { client, cell, door } = played;
  const ask = async (): Promise<Next> => ({
    statement: await client.run(insert(played, 3)),
    commit: await client.commit(),
    rollback: await client.rollback(),
  });
  const next = await ask();
  const again = cell.next === open ? seenBy(door, isCommitted).next : next;
  assert.deepEqual(await ask(), again, played.name);
  assert.equal(await client.rollback(), again?.rollback, played.name);
  return next;
}

const headers = { Authorization: `Bearer ${driverSettings.token}` };

test('its server is killed, and started again', async (t) => {
  if (!ownServerOnly(t)) return;
  const strike = async (underWay: UnderWay) => {
    await database.halt('SIGKILL');
    await Promise.all(underWay.values());
    await database.resume();
    await eventually(
      'the database is there',
      async () => (await gateway.get('/readyz')).status === 200,
    );
  };
  await lose(
    { gateway, proxy, strike },
    {
      'BEGIN is on its way': neverBegun(unreachable),
      'BEGIN is done, its answer on its way': neverBegun(unreachable),
      'between two statements': isOver(null),
      'a statement is on its way': isOver(lost),
      'a statement is being executed': isOver(lost),
      'a statement is done, its answer on its way': isOver(lost),
      'COMMIT is prepared, and not sent': isOver('409 TRANSACTION_ENDED rolled_back'),
      'COMMIT is on its way': isUnknown(lost, []),
      'COMMIT is done, its answer on its way': isUnknown(lost, [1]),
    },
  );
});

/** Makes one of two workers take all new connections. */
async function only(taker: number, other: number): Promise<void> {
  signal(taker, 'SIGCONT');
  signal(other, 'SIGSTOP');
  await eventually('one worker stands still', () => isStopped(other));
}

function twoWorkers(): readonly [number, number] {
  const [first = 0, second = 0, ...more] = gateway.workers();
  assert.deepEqual(more, []);
  return [first, second];
}

/**
 * Resolves when another worker has taken its place. As long as one of the threads of the killed worker lives, its sockets accept requests
 * without answering.
 */
async function killWorker(pid: number): Promise<void> {
  signal(pid, 'SIGKILL');
  await eventually('another one is there', () => {
    const workers = gateway.workers();
    return workers.length === 2 && !workers.includes(pid);
  });
}

test('its worker is killed', async () => {
  const [holder, other] = twoWorkers();
  await only(holder, other);
  const strike = async () => {
    signal(other, 'SIGCONT');
    await killWorker(holder);
  };
  await lose({ gateway, proxy, strike }, whoAnsweredDied);
});

test('its worker is killed, and another one had passed on a request in flight to it', async () => {
  const [holder, other] = twoWorkers();
  await only(holder, other);
  const via = async (count: number) => {
    await only(other, holder);
    const agent = new Agent({ keepAlive: true });
    const knock = () => gateway.get('/openapi.json', { headers, agent });
    await Promise.all(Array.from({ length: count }, knock));
    signal(holder, 'SIGCONT');
    return agent;
  };
  const strike = () => killWorker(holder);
  await lose(
    { gateway, proxy, via, strike },
    {
      'a statement is on its way': isOver(lost),
      'a statement is done, its answer on its way': isOver(lost),
      'COMMIT is prepared, and not sent': isOver('409 TRANSACTION_ENDED rolled_back'),
      'COMMIT is on its way': isUnknown(lost, []),
      'COMMIT is done, its answer on its way': isUnknown(lost, [1]),
    },
  );
});

/** Starts it again as it was, at the same address. */
async function startAgain(): Promise<Gateway> {
  return await start({ listen: `127.0.0.1:${gateway.port}` });
}

test('its gateway is stopped in order, and started again', async () => {
  const former = gateway;
  const strike = async (underWay: UnderWay) => {
    signal(former.pid, 'SIGTERM');
    await eventually('it has let go', () => !existsSync(former.pidfile));
    gateway = await startAgain();
    // The former one still drains. A request to its successor waits for the outcome of COMMIT.
    const committing = [...underWay.keys()].filter(
      ({ moment }) => moments[moment].step === 'COMMIT',
    );
    const meanwhile = committing.map(({ client }) => client.rollback());
    proxy.release();
    await Promise.all(underWay.values());
    const reported = committing.map(({ door }) => door.rollbackReported('committed'));
    assert.deepEqual(await Promise.all(meanwhile), reported);
    await former.stop();
  };
  await lose(
    { gateway, proxy, strike },
    {
      'BEGIN is on its way': isOver('begun'),
      'BEGIN is done, its answer on its way': isOver('begun'),
      'between two statements': isOver(null),
      'a statement is on its way': isOver('done'),
      'a statement is done, its answer on its way': isOver('done'),
      'COMMIT is prepared, and not sent': isCommitted,
      'COMMIT is on its way': isCommitted,
      'COMMIT is done, its answer on its way': isCommitted,
    },
  );
});

test('its gateway is killed, all of it, and started again', async () => {
  const former = gateway;
  const strike = async () => {
    const all = [former.pid, ...former.workers()];
    for (const pid of all) signal(pid, 'SIGKILL');
    await Promise.all(all.map((pid) => gone(pid)));
    gateway = await startAgain();
    await former.stop();
  };
  await lose({ gateway, proxy, strike }, whoAnsweredDied);
});

/**
 * A separate gateway loses the transactions when a time is over. A further transaction, which is idle from the last moment on, shows when.
 */
async function loseByTime(settings: object, end: 'idle' | 'too_old', cells: Cells): Promise<void> {
  const own = await startProxiedDatabase(database);
  const hasty = await startGateway({
    database: own.target,
    settings: { ...driverSettings, ...lasting, workers: 1, pool: 60, ...settings },
  });
  const strike = async (underWay: UnderWay) => {
    const [door] = doors;
    assert.equal(await door?.open(hasty).begin(), 'begun');
    const idle = 1 + doors.length;
    const asked = { ...hasty, get: (path: string) => hasty.get(path, { headers }) };
    await eventually('the time is over', async () => {
      const all = await readMetric(asked, 'dbhttpd_transactions_ended_total', { end });
      return all >= idle;
    });
    // An interrupted statement has a second for its answer, which does not come.
    const ends = [...underWay].filter(([{ cell }]) => cell.reported?.startsWith(tooLate));
    await Promise.all(ends.map(([, reported]) => reported));
    own.release();
    await Promise.all(underWay.values());
  };
  try {
    await lose({ gateway: hasty, proxy: own, strike }, cells);
  } finally {
    await hasty.stop();
    await own.stop();
  }
}

describe('time', { concurrency: true }, () => {
  test('it is idle for too long; a request in flight is not idle', async () => {
    await loseByTime({ transaction_idle_timeout: '3s' }, 'idle', {
      'BEGIN is on its way': goesOn('begun', 3),
      'BEGIN is done, its answer on its way': goesOn('begun', 3),
      'between two statements': isOver(null),
      'a statement is on its way': goesOn('done', 1, 2, 3),
      'a statement is done, its answer on its way': goesOn('done', 1, 2, 3),
      'COMMIT is prepared, and not sent': isCommitted,
      'COMMIT is on its way': isCommitted,
      'COMMIT is done, its answer on its way': isCommitted,
    });
  });

  test('it is too old, except for its COMMIT', async () => {
    await loseByTime({ transaction_timeout: '4s' }, 'too_old', {
      'BEGIN is on its way': goesOn('begun', 3),
      'BEGIN is done, its answer on its way': goesOn('begun', 3),
      'between two statements': isOver(null),
      'a statement is on its way': isOver(`${tooLate} unknown`),
      'a statement is being executed': isOver(`${tooLate} rolled_back`),
      'a statement is done, its answer on its way': isOver(`${tooLate} unknown`),
      'COMMIT is prepared, and not sent': isOver(`${tooLate} unknown`),
      'COMMIT is on its way': isCommitted,
      'COMMIT is done, its answer on its way': isCommitted,
    });
  });
});

test('nothing of them has arrived later', async () => {
  const rows = await database.query('select who, n from notes order by who, n');
  const found = rows.map(({ who, n }) => [Number(who), Number(n)]);
  assert.deepEqual(
    found,
    standing.toSorted(([a, m], [b, n]) => a - b || m - n),
  );
});
