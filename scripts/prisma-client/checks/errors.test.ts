// Errors of the generated client.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectThrough, failure, prisma, testBoth } from './clients.ts';
import { setting } from './setting.ts';

testBoth('a duplicate is P2002, with model and constraint', async (client) => {
  await client.customer.create({ data: { email: 'ada', orders: { create: { number: 1 } } } });
  for (const [promise, modelName, index] of [
    [client.customer.create({ data: { email: 'ada' } }), 'Customer', 'by_email'],
    [client.order.create({ data: { number: 1, customerId: 1n } }), 'Order', 'by_number'],
    [client.customer.create({ data: { id: 1n, email: 'bob' } }), 'Customer', 'PRIMARY'],
  ] as const) {
    const { code, meta, cause } = await failure(promise);
    assert.deepEqual(
      [code, meta.modelName, cause.kind],
      ['P2002', modelName, 'UniqueConstraintViolation'],
    );
    const { index: named } = cause.constraint as { index: string };
    // MySQL names a key with its table.
    assert.equal(named.split('.').at(-1), index);
  }
});

testBoth('a missing record is P2025', async (client) => {
  for (const [promise, operation] of [
    [client.customer.update({ where: { id: 9n }, data: { email: 'x' } }), 'an update'],
    [client.customer.delete({ where: { id: 9n } }), 'a delete'],
    [client.customer.findUniqueOrThrow({ where: { id: 9n } }), 'a query'],
  ] as const) {
    const { code, meta } = await failure(promise);
    assert.deepEqual([code, meta.modelName, meta.operation], ['P2025', 'Customer', operation]);
  }
});

testBoth('a foreign key is P2003, with its column', async (client) => {
  const orphan = await failure(client.order.create({ data: { number: 1, customerId: 9n } }));
  assert.deepEqual([orphan.code, orphan.cause.constraint], ['P2003', { fields: ['customerId'] }]);
  await client.customer.create({ data: { email: 'ada', orders: { create: { number: 1 } } } });
  const parent = await failure(client.customer.delete({ where: { email: 'ada' } }));
  assert.deepEqual([parent.code, parent.cause.originalCode], ['P2003', '1451']);
});

testBoth('a value that a column cannot hold is P2000 and P2020', async (client) => {
  const long = await failure(client.customer.create({ data: { email: 'a'.repeat(100) } }));
  assert.deepEqual([long.code, long.cause.column], ['P2000', 'email']);
  const wide = await failure(client.sample.create({ data: { tiny: 1000 } }));
  assert.deepEqual([wide.code, wide.cause.kind], ['P2020', 'ValueOutOfRange']);
});

testBoth(
  'a raw query that fails is P2010, with the number and the words of the server',
  async (client) => {
    for (const [promise, number, kind] of [
      [client.$queryRaw`selec 1`, '1064', 'mysql'],
      [client.$queryRaw`select * from nothing`, '1146', 'TableDoesNotExist'],
      [client.$queryRaw`select nothing from Customer`, '1054', 'ColumnNotFound'],
      [
        client.$executeRaw`insert into Customer (email) values (null)`,
        '1048',
        'NullConstraintViolation',
      ],
    ] as const) {
      const { code, cause } = await failure(promise);
      assert.deepEqual([code, cause.originalCode, cause.kind], ['P2010', number, kind]);
    }
  },
);

test('a wrong token is P1000', async () => {
  const wrong = connectThrough(setting.gateway.replace(/:[^:@]+@/, ':wrong@'));
  assert.equal((await failure(wrong.customer.count())).code, 'P1000');
});

test('a refusal of the gateway that no server has a number for is the driver’s own error', async () => {
  const { name, message } = await failure(
    prisma.$executeRawUnsafe('delete from Line; delete from Sample'),
  );
  assert.equal(name, 'DatabaseError');
  assert.match(message, /^One statement at a time/);
});

test('a name behind the port of the URL is put before every table', async () => {
  const { pathname } = new URL(setting.server);
  assert.equal(await connectThrough(`${setting.gateway}${pathname}`).line.count(), 0);
  const { cause } = await failure(connectThrough(`${setting.gateway}/elsewhere`).line.count());
  assert.match(String(cause.originalMessage), /elsewhere/);
});
