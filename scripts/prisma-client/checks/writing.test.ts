// The everyday work of an application: nested writes, relations, upserts, many rows at once, sums.
import assert from 'node:assert/strict';
import { straight, testBoth } from './clients.ts';
import { Prisma } from './generated/client.ts';

testBoth('a nested write makes all rows, and reads them with their relations', async (client) => {
  const made = await client.customer.create({
    data: {
      email: 'ada',
      orders: {
        create: [
          {
            number: 1,
            total: '1.5',
            lines: {
              createMany: {
                data: [
                  { place: 1, sku: 'A' },
                  { place: 2, sku: 'B' },
                ],
              },
            },
          },
          { number: 2 },
        ],
      },
    },
    include: { orders: { include: { lines: true }, orderBy: { number: 'asc' } } },
  });
  const [first, second] = made.orders;
  assert.deepEqual([made.id, made.email], [1n, 'ada']);
  assert.deepEqual(
    first?.lines.map(({ sku }) => sku),
    ['A', 'B'],
  );
  assert.deepEqual(
    [first?.total, second?.total],
    [new Prisma.Decimal('1.5'), new Prisma.Decimal(0)],
  );
  assert.deepEqual(second?.lines, []);
});

testBoth('a nested write of which a part fails makes nothing', async (client) => {
  const orders = { create: [{ number: 1 }, { number: 1 }] };
  await assert.rejects(client.customer.create({ data: { email: 'ada', orders } }), {
    code: 'P2002',
  });
  assert.equal(await straight.customer.count(), 0);
});

testBoth('relations are followed, counted and filtered by', async (client) => {
  const lines = { create: { place: 1, sku: 'A' } };
  await client.customer.create({
    data: { email: 'ada', orders: { create: { number: 1, lines } } },
  });
  await client.customer.create({ data: { email: 'bob' } });
  const emails = async (where: Prisma.CustomerWhereInput) =>
    (await client.customer.findMany({ where })).map(({ email }) => email);
  assert.deepEqual(await emails({ orders: { some: { lines: { some: { sku: 'A' } } } } }), ['ada']);
  assert.deepEqual(await emails({ orders: { none: {} } }), ['bob']);
  const counted = await client.customer.findMany({
    select: { email: true, _count: { select: { orders: true } } },
    orderBy: { orders: { _count: 'desc' } },
  });
  assert.deepEqual(
    counted.map(({ _count }) => _count.orders),
    [1, 0],
  );
  const order = await client.order.create({
    data: {
      number: 2,
      customer: { connectOrCreate: { where: { email: 'bob' }, create: { email: 'bob' } } },
    },
    include: { customer: true },
  });
  assert.equal(order.customer.email, 'bob');
  await client.order.deleteMany({ where: { customer: { email: 'ada' } } });
  assert.equal(await straight.line.count(), 0);
});

testBoth('an upsert makes a row, then changes it, then leaves it unchanged', async (client) => {
  const upsert = (email: string, to: string) =>
    client.customer.upsert({ where: { email }, create: { email }, update: { email: to } });
  assert.deepEqual(await upsert('ada', 'x'), { id: 1n, email: 'ada' });
  assert.deepEqual(await upsert('ada', 'bob'), { id: 1n, email: 'bob' });
  assert.deepEqual(await upsert('bob', 'bob'), { id: 1n, email: 'bob' });
  assert.equal(await straight.customer.count(), 1);
});

testBoth('createMany returns the number of new rows, without duplicates', async (client) => {
  const rows = (...emails: string[]) => emails.map((email) => ({ email }));
  assert.deepEqual(await client.customer.createMany({ data: rows('a', 'b') }), { count: 2 });
  assert.deepEqual(
    await client.customer.createMany({ data: rows('a', 'c'), skipDuplicates: true }),
    { count: 1 },
  );
  const many = Array.from({ length: 2000 }, (_, whole) => ({ whole, word: `w${whole}` }));
  assert.deepEqual(await client.sample.createMany({ data: many }), { count: 2000 });
  const chosen = await client.sample.findMany({
    where: { whole: { in: many.map(({ whole }) => whole) } },
  });
  assert.equal(chosen.length, 2000);
});

testBoth(
  'updateMany counts the rows that it has found, whether or not they were changed',
  async (client) => {
    await client.customer.createMany({ data: [{ email: 'a' }, { email: 'b' }] });
    const set = (from: string, to: string) =>
      client.customer.updateMany({ where: { email: from }, data: { email: to } });
    assert.deepEqual(
      [await set('a', 'a'), await set('a', 'c'), await set('z', 'z')],
      [{ count: 1 }, { count: 1 }, { count: 0 }],
    );
    assert.deepEqual(await client.customer.deleteMany(), { count: 2 });
  },
);

testBoth('increments are added to the present value', async (client) => {
  await client.sample.create({ data: { whole: 1, big: 1n, price: 1 } });
  const { whole, big, price } = await client.sample.update({
    where: { id: 1 },
    data: { whole: { increment: 2 }, big: { multiply: 3n }, price: { divide: 4 } },
  });
  assert.deepEqual([whole, big, price], [3, 3n, new Prisma.Decimal('0.25')]);
});

testBoth('aggregate and groupBy', async (client) => {
  await client.sample.createMany({
    data: [
      { whole: 1, price: '1.1', big: 5n, size: 'small' },
      { whole: 2, price: '2.2', big: 6n, size: 'large' },
      { whole: 3, size: 'large' },
    ],
  });
  const all = await client.sample.aggregate({
    _sum: { whole: true, price: true, big: true },
    _avg: { whole: true, price: true },
    _min: { at: true, whole: true },
    _max: { price: true },
    _count: { _all: true, price: true },
  });
  assert.deepEqual(all, {
    _sum: { whole: 6, price: new Prisma.Decimal('3.3'), big: 11n },
    _avg: { whole: 2, price: new Prisma.Decimal('1.65') },
    _min: { at: null, whole: 1 },
    _max: { price: new Prisma.Decimal('2.2') },
    _count: { _all: 3, price: 2 },
  });
  const groups = await client.sample.groupBy({
    by: ['size'],
    _count: true,
    _sum: { whole: true },
    orderBy: { size: 'asc' },
    having: { whole: { _sum: { gt: 1 } } },
  });
  assert.deepEqual(groups, [{ size: 'large', _count: 2, _sum: { whole: 5 } }]);
});

testBoth('pages by cursor', async (client) => {
  await client.sample.createMany({ data: [1, 2, 3, 4, 5].map((whole) => ({ whole })) });
  const page = await client.sample.findMany({
    cursor: { id: 3 },
    skip: 1,
    take: 2,
    orderBy: { id: 'asc' },
  });
  assert.deepEqual(
    page.map(({ whole }) => whole),
    [4, 5],
  );
});
