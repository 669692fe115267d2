// The Model Context Protocol in the three revisions that clients speak, without sessions: every message stands alone.
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { version } from '../../../src/shared/process/build.ts';
import { useGateway } from '../../support/use-gateway.ts';
import { createAgent, headersOf, messageOf, payloadOf, revisions } from './support/agent.ts';

const { gateway } = useGateway({ workers: 2, mcp: 'on' });
const accept = 'application/json, text/event-stream';

test('a client of 2026-07-28 discovers the server without a handshake', async () => {
  const { send } = createAgent(() => gateway);
  const { reply, result } = await send('server/discover');
  assert.equal(reply.status, 200);
  assert.deepEqual(result?.supportedVersions, ['2026-07-28']);
  assert.deepEqual(result?.capabilities, { tools: {} });
  assert.match(String(result?.instructions), /is data, and never an instruction/);
});

for (const revision of revisions.slice(1)) {
  test(`a client of ${revision} gets this revision from the handshake, and no session`, async () => {
    const { send } = createAgent(() => gateway, revision);
    const hello = {
      protocolVersion: revision,
      capabilities: {},
      clientInfo: { name: 'tests', version: '1' },
    };
    const { reply, result } = await send('initialize', hello);
    assert.equal(reply.headers['mcp-session-id'], undefined);
    assert.equal(result?.protocolVersion, revision);
    assert.deepEqual(result?.serverInfo, { name: 'dbhttpd', version });
    const initialized = { jsonrpc: '2.0', method: 'notifications/initialized' };
    const headers = headersOf(revision, 'notifications/initialized');
    const noted = await gateway.post('/mcp', initialized, { headers });
    assert.deepEqual([noted.status, noted.text], [202, '']);
  });
}

for (const revision of revisions) {
  suite(`in revision ${revision}`, () => {
    const agent = createAgent(() => gateway, revision);

    test('the list of tools is sorted, and says what the tools do', async () => {
      const { result } = await agent.send('tools/list');
      const tools = result?.tools as { name: string; annotations: object; inputSchema: object }[];
      assert.deepEqual(
        tools.map(({ name }) => name),
        ['describe', 'query'],
      );
      for (const { annotations } of tools) {
        assert.deepEqual(annotations, {
          readOnlyHint: true,
          destructiveHint: false,
          idempotentHint: true,
          openWorldHint: false,
        });
      }
    });

    test('a tool is called, and its result is compact JSON', async () => {
      const { text } = await agent.call('query', {
        sql: "select 'a' as one, ? as two",
        params: ['b'],
      });
      assert.equal(
        text,
        '{"columns":["one","two"],"rows":[["a","b"]],"row_count":1,"truncated":false}',
      );
    });

    test('an unknown tool is an error of the protocol, arguments that make no sense are one of the tool', async () => {
      const { error } = await agent.send('tools/call', { name: 'drop_all', arguments: {} });
      assert.deepEqual(error, { code: -32_602, message: 'Unknown tool: "drop_all"' });
      const wrong: readonly (readonly [object, RegExp])[] = [
        [{}, /sql is missing/],
        [{ sql: 7 }, /sql must be a string/],
        [{ sql: ' ' }, /sql is missing, or empty/],
        [{ sql: 'select 1', params: 'x' }, /params must be an array or an object/],
        [{ sql: 'select 1', max_rows: 0 }, /max_rows must be a whole number from 1/],
        [{ sql: 'select 1', limit: 1 }, /"limit" is not a field here/],
      ];
      for (const [args, message] of wrong) {
        const { isError, json } = await agent.call<{ error: { message: string } }>('query', args);
        assert.equal(isError, true);
        assert.match(json.error.message, message);
      }
    });

    test('an unknown method is an error with the id of its request', async () => {
      const { error } = await agent.send('resources/list');
      assert.equal(error?.code, -32_601);
    });
  });
}

test('a batch is refused as a whole', async () => {
  const message = messageOf('2025-06-18', 'tools/list');
  for (const body of [[message, message], [], ' \n[1]']) {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const reply = await gateway.post('/mcp', text, { headers: { Accept: accept } });
    assert.equal(reply.status, 400);
    assert.match(reply.text, /batches are not accepted/);
    assert.equal(payloadOf(reply).id, null);
  }
});

test('a body that is no message is an error of JSON-RPC', async () => {
  const send = (body: string | Buffer, headers: Record<string, string> = {}) =>
    gateway.request('/mcp', {
      method: 'POST',
      body,
      headers: { 'Content-Type': 'application/json', Accept: accept, ...headers },
    });
  const broken = await send('{"jsonrpc"');
  assert.equal(broken.status, 400);
  assert.equal((payloadOf(broken).error as { code: number }).code, -32_700);
  assert.equal((await send(Buffer.from('{"a":"\xff"}', 'latin1'))).status, 400);
  assert.equal((await send('{}', { 'Content-Type': 'text/plain' })).status, 415);
  assert.equal((await send(`{"jsonrpc":"2.0","x":"${'x'.repeat(2 ** 20)}"}`)).status, 413);
  assert.equal((await send('{"jsonrpc":"2.0"}')).status, 400);
});

test('ids come back as they were, however long', async () => {
  for (const id of ['x'.repeat(300_000), 0, '', 'a"b']) {
    const message = { ...messageOf('2025-11-25', 'ping'), id };
    const headers = headersOf('2025-11-25', 'ping');
    const reply = await gateway.post('/mcp', message, { headers });
    assert.equal(payloadOf(reply).id, id);
  }
});

test('the endpoint takes POST, and says so', async () => {
  for (const method of ['GET', 'DELETE', 'PUT']) {
    const reply = await gateway.request('/mcp', { method, headers: { Accept: accept } });
    assert.equal(reply.status, 405);
    assert.equal(reply.headers.allow, 'POST');
  }
});

test('headers that contradict the message are refused', async () => {
  const params = { name: 'query', arguments: { sql: 'select 1' } };
  const message = messageOf('2026-07-28', 'tools/call', params);
  const right = headersOf('2026-07-28', 'tools/call', params);
  for (const wrong of [{ 'Mcp-Name': 'describe' }, { 'Mcp-Method': 'tools/list' }]) {
    const reply = await gateway.post('/mcp', message, { headers: { ...right, ...wrong } });
    assert.equal(reply.status, 400, reply.text);
  }
});

test('nothing can be subscribed to, so no reply stays open', async () => {
  const { send } = createAgent(() => gateway);
  const { error } = await send('subscriptions/listen', { notifications: {} });
  assert.notEqual(error, undefined);
});

test('replies are not stored, and have the id of their request', async () => {
  const { send } = createAgent(() => gateway);
  const { reply } = await send('tools/list', {}, { headers: { 'X-Request-ID': 'agent-7' } });
  assert.equal(reply.headers['x-request-id'], 'agent-7');
  assert.equal(reply.headers['cache-control'], 'no-store');
  assert.equal(reply.headers['content-type'], 'application/json');
});
