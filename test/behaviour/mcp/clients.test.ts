// The protocol's own clients, of this generation and of the last one, work with the gateway as they are.
import assert from 'node:assert/strict';
import { after, suite, test } from 'node:test';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { Client as FormerClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as FormerTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { eventually } from '../../support/eventually.ts';
import { useGateway } from '../../support/use-gateway.ts';
import { createNamedDirectory } from '../named/support/named-directory.ts';

const directory = createNamedDirectory(`
-- name: every_type :many
-- for: *
select * from every_type order by id;

-- name: one_of_every_type :one
-- for: *
-- param id: int
select * from every_type where id = :id;

-- name: add :exec
-- for: *
-- param id: int
insert into every_type (id) values (:id);

-- name: add_and_show :batch
-- for: *
-- param id: int
-- step: added
insert into every_type (id) values (:id);
-- answer
select * from every_type where id = :id;
`);
after(() => directory.remove());
const everyType =
  'id int primary key, f float, d double, n decimal(10,2), b bigint, y year, t tinyint(1), bits bit(3), day date, ' +
  "at datetime(3), span time, moment timestamp null, word varchar(9), long_text text, bytes varbinary(9), blob_ blob, kind enum('a','b'), " +
  "many set('a','b'), doc json, place point";
const values =
  "1, 1.5, 2.5, 3.25, 9007199254740993, 2026, 1, b'101', '2026-01-02', '2026-01-02 03:04:05.678', '-01:02:03', " +
  "'2026-01-02 03:04:05', 'word', repeat('x', 3000), x'00ff', x'00ff', 'a', 'a,b', '{\"a\":[1]}', point(1, 2)";

const token = 'a-token-of-the-tests';
const { gateway } = useGateway(
  { workers: 2, mcp: 'on', token, named: directory.path },
  {
    prepare: (own) =>
      own
        .query(
          `create table t (id int primary key, name text); insert into t values (1, 'one');
           create table every_type (${everyType}); insert into every_type values (${values});
           insert into every_type (id) values (2)`,
        )
        .then(() => {}),
  },
);
const requestInit = { headers: { Authorization: `Bearer ${token}` } };
let nextId = 10;
const who = { name: 'tests', version: '1' };

/** The part of a client that both generations have. */
type AnyClient = {
  readonly listTools: () => Promise<{ tools: { name: string }[] }>;
  readonly callTool: (call: {
    name: string;
    arguments: Record<string, unknown>;
  }) => Promise<object>;
  readonly ping: () => Promise<unknown>;
  readonly close: () => Promise<void>;
};

const mcpUrl = () => new URL('/mcp', gateway.url);

const clients: Readonly<Record<string, () => Promise<AnyClient>>> = {
  '2.4, in the revision of 2026-07-28': async () => {
    const client = new Client(who, { versionNegotiation: { mode: 'auto' } });
    await client.connect(new StreamableHTTPClientTransport(mcpUrl(), { requestInit }));
    assert.equal(client.getNegotiatedProtocolVersion(), '2026-07-28');
    return client as unknown as AnyClient;
  },
  '2.4, with the handshake of 2025': async () => {
    const client = new Client(who);
    await client.connect(new StreamableHTTPClientTransport(mcpUrl(), { requestInit }));
    return client as unknown as AnyClient;
  },
  '1.x': async () => {
    const client = new FormerClient(who);
    const transport = new FormerTransport(mcpUrl(), { requestInit });
    await client.connect(transport as unknown as Parameters<typeof client.connect>[0]);
    assert.equal(transport.sessionId, undefined);
    return client as unknown as AnyClient;
  },
};

for (const [name, connect] of Object.entries(clients)) {
  suite(`the protocol's own client ${name}`, () => {
    test('lists the tools, calls them, and gets errors that it can show its model', async () => {
      const client = await connect();
      try {
        const { tools } = await client.listTools();
        assert.deepEqual(
          tools.map((tool) => tool.name),
          ['add', 'add_and_show', 'describe', 'every_type', 'one_of_every_type', 'query'],
        );
        const rows = await client.callTool({
          name: 'query',
          arguments: { sql: 'select * from t where id = :id', params: { id: 1 } },
        });
        assert.deepEqual(contentOf(rows), {
          isError: false,
          text: '{"columns":["id","name"],"rows":[[1,"one"]],"row_count":1,"truncated":false}',
        });
        const described = await client.callTool({ name: 'describe', arguments: { table: 't' } });
        assert.match(contentOf(described).text, /"primary_key":\["id"\]/);
        const refused = await client.callTool({
          name: 'query',
          arguments: { sql: 'drop table t' },
        });
        assert.equal(contentOf(refused).isError, true);
        assert.match(contentOf(refused).text, /"code":"READ_ONLY"/);
        await assert.rejects(client.callTool({ name: 'nothing', arguments: {} }), /Unknown tool/);
      } finally {
        await client.close();
      }
    });

    test('finds that results of named statements have the schemas of the list', async () => {
      const client = await connect();
      try {
        await eventually('the columns are known', async () =>
          JSON.stringify(await client.listTools()).includes('long_text'),
        );
        const call = async (tool: string, args: Record<string, unknown> = {}) => {
          const result = await client.callTool({ name: tool, arguments: args });
          const { isError, text } = contentOf(result);
          assert.equal(isError, false, text);
          const { structuredContent } = result as { structuredContent?: object };
          assert.deepEqual(structuredContent, JSON.parse(text));
          return structuredContent;
        };
        await call('every_type');
        for (const id of [1, 2]) await call('one_of_every_type', { id });
        nextId += 2;
        await call('add', { id: nextId });
        await call('add_and_show', { id: nextId + 1 });
        const missing = await client.callTool({ name: 'one_of_every_type', arguments: { id: 0 } });
        assert.match(contentOf(missing).text, /"code":"NO_ROW"/);
      } finally {
        await client.close();
      }
    });
  });
}

test('a client without the token is not let in', async () => {
  const client = new FormerClient(who);
  const transport = new FormerTransport(mcpUrl());
  await assert.rejects(
    client.connect(transport as unknown as Parameters<typeof client.connect>[0]),
    /401|token/i,
  );
});

function contentOf(result: object) {
  const { content, isError = false } = result as {
    content: { text: string }[];
    isError?: boolean;
  };
  return { isError, text: content[0]?.text ?? '' };
}
