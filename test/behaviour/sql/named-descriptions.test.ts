// Descriptions of named statements are read with a worker's catalogue, read again after tables have changed, and kept meanwhile.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { parseFile } from '../../../src/shared/named/parse-file.ts';
import type { NamedStatement } from '../../../src/shared/named/statement.ts';
import type { Log, LogFields } from '../../../src/shared/process/log.ts';
import { Catalogue } from '../../../src/worker/servers/catalogue/catalogue.ts';
import type { Pool } from '../../../src/worker/servers/pool/pool.ts';
import type { Session } from '../../../src/worker/servers/pool/session.ts';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import { openWireConnection } from '../../support/database/wire-connection.ts';

let database: Database;
before(async () => {
  database = await startDatabase();
});
after(() => database.stop());

/** A catalogue with a pool of one session, and the end of each of its readings. */
async function useCatalogue() {
  let connection = await openWireConnection(database);
  const warnings: LogFields[] = [];
  const releases: string[] = [];
  let released = () => {};
  const pool = {
    request: (waiting: Catalogue) => {
      const lend = () => waiting.granted({ connection, isFresh: false } as unknown as Session);
      setImmediate(lend);
    },
    release: (_session: Session, verdict: string) => {
      releases.push(verdict);
      setImmediate(() => released());
    },
  };
  const log = {
    warn: (_event: string, fields: LogFields) => warnings.push(fields),
  } as unknown as Log;
  const catalogue = new Catalogue(pool as unknown as Pool, () => {}, log);
  return {
    catalogue,
    warnings,
    releases,
    reconnect: async () => {
      connection = await openWireConnection(database);
    },
    /** Does something, and waits for the end of the reading that follows. */
    reading: (begin: () => void) =>
      new Promise<void>((resolve) => {
        released = resolve;
        begin();
      }),
    close: () => {
      catalogue.close();
      connection.destroy(new Error('the test is over'));
    },
  };
}

function statements(text: string): readonly NamedStatement[] {
  const parsed = parseFile(text, 'shop.sql', { hasIdempotencyTable: false });
  assert.ok(parsed.ok, JSON.stringify(parsed));
  return parsed.statements;
}

const byStatus = `-- name: by_status :many
-- for: *
-- param status: enum of orders.status
select id, status, total from orders where status = :status;
`;

test('values and columns are read, and read again after tables have changed', async (t) => {
  await database.query("create table orders (id int not null, status enum('open'), total int)");
  const worker = await useCatalogue();
  t.after(worker.close);
  const { catalogue, reading } = worker;
  const values = () => [...(catalogue.named.valuesOf('orders', 'status') ?? [])];
  const columns = () =>
    catalogue.named.find('by_status')?.answer?.map(({ name, type }) => `${name} ${type}`);
  assert.equal(catalogue.named.valuesOf('orders', 'status'), null);
  assert.equal(catalogue.named.find('by_status'), null);

  catalogue.named.use(statements(byStatus));
  await reading(() => catalogue.start());
  assert.deepEqual(values(), ['open']);
  assert.deepEqual(columns(), ['id INT', 'status ENUM', 'total INT']);

  await database.query("alter table orders modify status enum('open','paid'), modify total double");
  const again = reading(() => catalogue.outdate());
  assert.deepEqual(values(), ['open'], 'the former values remain until then');
  assert.ok(columns() !== undefined);
  await again;
  assert.deepEqual(values(), ['open', 'paid']);
  assert.deepEqual(columns(), ['id INT', 'status ENUM', 'total DOUBLE']);
  assert.deepEqual(worker.releases, ['unclean', 'unclean'], 'the session is reset');
});

test('statements that are replaced keep the values that are known, and their columns are read', async (t) => {
  await database.query("create table colours (id int not null, c enum('red') not null)");
  const worker = await useCatalogue();
  t.after(worker.close);
  const { catalogue, reading } = worker;
  const text = (more: string) =>
    `-- name: by_colour :many\n-- for: *\n-- param c: enum of colours.c\nselect id${more} from colours where c = :c;\n`;
  catalogue.named.use(statements(text('')));
  await reading(() => catalogue.start());
  const replaced = reading(() => catalogue.useNamed(statements(text(', c, nowhere'))));
  assert.deepEqual([...(catalogue.named.valuesOf('colours', 'c') ?? [])], ['red']);
  assert.equal(catalogue.named.find('by_colour'), null);
  await replaced;
  assert.equal(catalogue.named.find('by_colour')?.faults.length, 1);
  assert.deepEqual(worker.warnings, [{ count: 1, statements: 'by_colour' }]);
  assert.ok(catalogue.objects !== null, 'the tables are known all the same');
});

test('a connection that is lost while statements are described costs the catalogue nothing', async (t) => {
  await database.query('create table lost (id int not null)');
  const worker = await useCatalogue();
  t.after(worker.close);
  const { catalogue, reading } = worker;
  const many = Array.from(
    { length: 200 },
    (_, at) => `-- name: s${at} :many\n-- for: *\nselect id from lost;\n`,
  );
  catalogue.named.use(statements(many.join('\n')));
  const read = catalogue.named.read.bind(catalogue.named);
  catalogue.named.read = async (connection) => {
    setImmediate(() => connection.destroy(new Error('cut')));
    await read(connection);
  };
  await reading(() => catalogue.start());
  assert.deepEqual(worker.releases, ['broken']);
  assert.ok(catalogue.objects !== null);
  assert.equal(catalogue.named.find('s0'), null);
  assert.equal(catalogue.named.isCurrent, false);

  catalogue.named.read = read;
  await worker.reconnect();
  await reading(() => catalogue.outdate());
  assert.equal(catalogue.named.find('s199')?.answer?.[0]?.type, 'INT');
  assert.equal(catalogue.named.isCurrent, true);
});
