// Values of every type of a schema, written and read by the generated client.
import assert from 'node:assert/strict';
import { straight, testBoth } from './clients.ts';
import { Prisma } from './generated/client.ts';

const at = new Date('2024-02-29T23:59:59.123Z');
const values = {
  flag: true,
  tiny: -128,
  whole: -2_147_483_648,
  positive: 4_294_967_295,
  big: -9_223_372_036_854_775_808n,
  bigger: 18_446_744_073_709_551_615n,
  ratio: 1.5e300,
  price: new Prisma.Decimal('12345678901234567890.123456789012345678901234567890'),
  year: 2024,
  word: 'O\'Neil \\ " é 🎉 \0\n?:id',
  text: "\\'".repeat(40_000),
  size: 'large' as const,
  bytes: new Uint8Array([0, 255, 39, 92, 195]),
  uuid: new Uint8Array(16).fill(7),
  bit: true,
  day: new Date('2024-02-29'),
  clock: new Date('1970-01-01T12:34:56.789Z'),
  at,
  stamp: at,
};
const json = { a: [1, "é'\\🎉", null, { b: 1.5 }], n: true };

testBoth('values of every type come back as they were written', async (client) => {
  await client.sample.create({ data: { ...values, json } });
  const { id: _id, ...found } = await client.sample.findFirstOrThrow();
  assert.deepEqual(found, { ...values, json });
  // A row that the other client wrote is read alike.
  const { id: _other, ...seen } = await straight.sample.findFirstOrThrow();
  assert.deepEqual(seen, found);
});

testBoth('values of every type are found by themselves', async (client) => {
  await client.sample.create({ data: values });
  for (const [field, value] of Object.entries(values)) {
    assert.equal(await client.sample.count({ where: { [field]: value } }), 1, field);
    assert.equal(await client.sample.count({ where: { NOT: { [field]: value } } }), 0, field);
  }
});

testBoth('NULL and empty are two things', async (client) => {
  await client.sample.create({ data: {} });
  await client.sample.create({ data: { word: '', text: '', bytes: new Uint8Array(), json: {} } });
  const [nothing, empty] = await client.sample.findMany({ orderBy: { id: 'asc' } });
  const { id: _id, ...fields } = nothing ?? { id: 0 };
  assert.deepEqual([...new Set(Object.values(fields))], [null]);
  assert.deepEqual(
    [empty?.word, empty?.text, empty?.bytes, empty?.json],
    ['', '', new Uint8Array(), {}],
  );
});

testBoth('JSON is found by its content', async (client) => {
  await client.sample.create({ data: { whole: 1, json } });
  await client.sample.create({ data: { whole: 2, json: Prisma.JsonNull } });
  await client.sample.create({ data: { whole: 3, json: Prisma.DbNull } });
  const numbers = async (where: Prisma.SampleWhereInput) =>
    (await client.sample.findMany({ where, orderBy: { id: 'asc' } })).map(({ whole }) => whole);
  assert.deepEqual(await numbers({ json: { path: '$.a[1]', equals: "é'\\🎉" } }), [1]);
  assert.deepEqual(await numbers({ json: { path: '$.a', array_contains: 1 } }), [1]);
  assert.deepEqual(await numbers({ json: { equals: Prisma.JsonNull } }), [2]);
  assert.deepEqual(await numbers({ json: { equals: Prisma.DbNull } }), [3]);
});

testBoth('a pattern of LIKE is the caller’s text', async (client) => {
  for (const word of ['100%', '100x', 'a\\b', "it's", 'a_b']) {
    await client.sample.create({ data: { word } });
  }
  const words = async (where: Prisma.StringNullableFilter) =>
    (await client.sample.findMany({ where: { word: where }, orderBy: { id: 'asc' } })).map(
      ({ word }) => word,
    );
  assert.deepEqual(await words({ endsWith: "'s" }), ["it's"]);
  assert.deepEqual(await words({ startsWith: '100' }), ['100%', '100x']);
  assert.deepEqual(await words({ equals: 'a\\b' }), ['a\\b']);
});

testBoth('$queryRaw and $executeRaw take parameters and give typed columns', async (client) => {
  await client.sample.create({ data: { ...values, bigger: null, json } });
  const found = await client.$queryRaw`
    select flag, tiny, big, price, json, bytes, day, clock, at, bit, word, ratio, year, size, null as nothing
    from Sample where word = ${values.word} and tiny in (${Prisma.join([1, -128])}) and at = ${at}`;
  const { big, price, bytes, day, clock, word, ratio, year, size } = values;
  const bit = new Uint8Array([1]);
  assert.deepEqual(found, [
    {
      flag: 1,
      tiny: -128,
      big,
      price,
      json,
      bytes,
      day,
      clock,
      at,
      bit,
      word,
      ratio,
      year,
      size,
      nothing: null,
    },
  ]);
  const sums = await client.$queryRawUnsafe(
    'select count(*) as n, sum(tiny) as s, 1.5 as d from Sample where id > ?',
    0,
  );
  assert.deepEqual(sums, [{ n: 1n, s: new Prisma.Decimal(-128), d: new Prisma.Decimal('1.5') }]);
  assert.equal(
    await client.$executeRaw`update Sample set word = ${'x ? :y'} where tiny = ${-128}`,
    1,
  );
  assert.equal((await client.sample.findFirstOrThrow()).word, 'x ? :y');
});

testBoth('a single value of a raw query comes back as text and number', async (client) => {
  const found =
    await client.$queryRaw`select ${at} as moment, ${5_000_000_000n} as large, ${'é'} as word`;
  assert.deepEqual(found, [
    { moment: '2024-02-29 23:59:59.123', large: 5_000_000_000n, word: 'é' },
  ]);
});
