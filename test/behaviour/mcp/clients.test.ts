// The protocol's own clients, of this generation and of the last one, work with the gateway as they are.
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { Client as FormerClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as FormerTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { useGateway } from '../../support/use-gateway.ts';

const token = 'a-token-of-the-tests';
const { gateway } = useGateway(
  { workers: 2, mcp: 'on', token },
  {
    prepare: (own) =>
      own
        .query("create table t (id int primary key, name text); insert into t values (1, 'one')")
        .then(() => {}),
  },
);
const requestInit = { headers: { Authorization: `Bearer ${token}` } };
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
          ['describe', 'query'],
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
