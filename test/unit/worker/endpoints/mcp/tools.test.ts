// The tools of a client, and how their results reach the protocol's package.
import assert from 'node:assert/strict';
import test from 'node:test';
import {
  type Client,
  defaultClient,
  type Permission,
} from '../../../../../src/shared/clients/client.ts';
import { Protocol } from '../../../../../src/worker/endpoints/mcp/protocol.ts';
import { showHidden, type Tool, ToolSets } from '../../../../../src/worker/endpoints/mcp/tools.ts';

const clientWith = (...allow: Permission[]): Client => ({ ...defaultClient, allow });

function toolOf(name: string, isStructured = false): Tool {
  const schema = { type: 'object', properties: {} } as const;
  return {
    definition: {
      name,
      description: name,
      inputSchema: schema,
      ...(isStructured ? { outputSchema: schema } : {}),
      annotations: {
        readOnlyHint: false,
        destructiveHint: true,
        idempotentHint: false,
        openWorldHint: false,
      },
    },
    // biome-ignore lint/correctness/useYield: it is done at once.
    *decide() {
      return { ok: true, kind: 'reply', json: '{}' };
    },
  };
}

const none: readonly Tool[] = [];
const forSql = () => [toolOf('query'), toolOf('describe')];

test('the list is sorted, and has the named statements of the client', () => {
  const named = [toolOf('orders_of'), toolOf('cancel_order')];
  const sets = new ToolSets(forSql, () => named);
  const namesOf = (client: Client) => sets.of(client).definitions.map(({ name }) => name);
  assert.deepEqual(namesOf(clientWith('mcp', 'sql')), [
    'cancel_order',
    'describe',
    'orders_of',
    'query',
  ]);
  assert.deepEqual(namesOf(clientWith('mcp', 'named')), ['cancel_order', 'orders_of']);
  assert.equal(sets.of(clientWith('mcp', 'named')).showsServerText, false);
});

test('the list is built once for each client, and again when the named statements are replaced', () => {
  let named: readonly Tool[] = [toolOf('one')];
  const sets = new ToolSets(forSql, () => named);
  const client = clientWith('mcp', 'sql');
  const first = sets.of(client);
  assert.equal(sets.of(client), first);
  named = [toolOf('two')];
  assert.notEqual(sets.of(client), first);
  assert.ok(sets.of(client).byName.has('two'));
  const unnamed = new ToolSets(forSql, () => none);
  assert.equal(unnamed.of(client), unnamed.of(client));
});

const headers = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
  'mcp-protocol-version': '2025-11-25',
};

function messageOf(body: Buffer): { readonly id: unknown; readonly result: object } {
  return JSON.parse(/^data: (.*)$/m.exec(body.toString())?.[1] ?? '');
}

test('a list that is kept is what its client would get from the package, with the id of its message', async () => {
  const protocol = new Protocol();
  const first = [toolOf('one').definition];
  const ask = async (id: unknown, definitions = first, further = {}) => {
    const body = { jsonrpc: '2.0', id, method: 'tools/list' };
    const given = { ...headers, ...further };
    const message = { method: 'POST', headers: given, body, definitions, call: () => null };
    const reply = await protocol.answer(message);
    const fresh = await new Protocol().answer(message);
    assert.deepEqual([reply.status, reply.contentType], [fresh.status, fresh.contentType]);
    assert.equal(reply.body.toString(), fresh.body.toString());
    return reply.status === 200 ? messageOf(reply.body) : { id: null, result: null };
  };
  for (const id of [1, 2, 'a "quoted" id', 2]) {
    const { id: answered, result } = await ask(id);
    assert.equal(answered, id);
    assert.deepEqual(result, { tools: first });
  }
  // As when named statements are loaded again, and for another client.
  const second = [toolOf('two').definition, toolOf('"id":1').definition];
  assert.deepEqual((await ask(1, second)).result, { tools: second });
  assert.equal((await ask(1, second, { accept: 'text/html' })).result, null);
  assert.deepEqual((await ask(1)).result, { tools: first });
});

test('a result is structured content too if the tool has an outputSchema, and an error is not', async () => {
  const protocol = new Protocol();
  const definitions = [toolOf('plain').definition, toolOf('structured', true).definition];
  const call = async (name: string, ok: boolean) => {
    const json = '{"rows":[["1"]]}';
    const params = { name, arguments: {} };
    const { body } = await protocol.answer({
      method: 'POST',
      headers,
      body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params },
      definitions,
      call: () => Promise.resolve(ok ? { ok, json } : { ok, json, failure: null }),
    });
    return messageOf(body).result;
  };
  const content = [{ type: 'text', text: '{"rows":[["1"]]}' }];
  assert.deepEqual(await call('plain', true), { content });
  assert.deepEqual(await call('structured', true), {
    content,
    structuredContent: { rows: [['1']] },
  });
  assert.deepEqual(await call('structured', false), { content, isError: true });
});

test('hidden characters become escapes, and the JSON means the same', () => {
  const text = 'a\u009b\u202e\u200b\u{e0041}\ufeff é 🙂 \u00ad';
  const shown = showHidden(JSON.stringify({ text }));
  assert.deepEqual(JSON.parse(shown), { text });
  assert.ok(shown.includes('é 🙂'));
  assert.match(shown, /\\u009b\\u202e\\u200b\\udb40\\udc41\\ufeff/);
});
