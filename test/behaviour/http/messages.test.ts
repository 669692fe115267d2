// The promise of strict HTTP, case by case: RFC 9112 has one reading here, in any segments. Bytes that are not to the letter are refused in
// JSON, their connection ends, and nothing of them runs.
import assert from 'node:assert/strict';
import test from 'node:test';
import { openRaw, type RawReply } from '../../support/http.ts';
import { at, parseStrictJson } from '../../support/strict-json.ts';
import { useProxiedGateway } from '../../support/use-gateway.ts';
import { type MessageCase, messageCases } from './support/message-cases.ts';

const { gateway, proxy } = useProxiedGateway({ workers: 1, pool: 2 });
const next = 'GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n';

/** Sends a case in pieces, reads its reply, and sees whether the connection goes on. */
async function judge([, , bytes, status, connection]: MessageCase, pieceBytes: number) {
  const client = await openRaw(gateway.port);
  try {
    const all = Buffer.from(bytes, 'latin1');
    for (let from = 0; from < all.length; from += pieceBytes) {
      const piece = all.subarray(from, from + pieceBytes);
      await new Promise<void>((resolve) => client.socket.write(piece, () => resolve()));
    }
    const reply = await client.reply();
    assert.equal(reply.status, status, String(reply.body));
    if (status === 200) assert.match(String(reply.body), /"ROWS":\[\["good"\]\]/);
    else assertRefused(reply);
    assert.equal(reply.header('connection'), connection === 'open' ? 'keep-alive' : 'close');
    if (connection === 'closed') assert.equal(await client.ended(), 'fin');
    else client.send(next);
    if (connection === 'open') assert.equal((await client.reply()).status, 404);
    assert.equal(client.received(), '');
  } finally {
    client.socket.destroy();
  }
}

function assertRefused(reply: RawReply): void {
  const body = parseStrictJson(reply.body);
  assert.equal(at(body, 'OUTCOME'), 'not_executed');
  assert.equal(typeof at(body, 'ERROR'), 'string');
  assert.match(String(at(body, 'CODE')), /^[A-Z_]+$/);
  assert.equal(reply.header('content-type'), 'application/json; charset=utf-8');
  assert.equal(reply.header('x-content-type-options'), 'nosniff');
  assert.equal(reply.header('cross-origin-resource-policy'), 'same-origin');
  assert.ok(reply.header('x-request-id'));
}

async function judgeInPieces(one: MessageCase): Promise<void> {
  const { length } = one[2];
  for (const pieceBytes of [length, length < 1000 ? 1 : 1000]) await judge(one, pieceBytes);
}

const nameOf = ([section, what, , status, connection]: MessageCase) =>
  `${section} ${what}: ${status}, ${connection}`;

test('takes good messages as RFC 9112 says, in any segments', async (t) => {
  const good = messageCases.filter(([, , , status]) => status === 200);
  for (const one of good) await t.test(nameOf(one), () => judgeInPieces(one));
  assert.ok(proxy.statements.some((statement) => statement.includes('good')));
});

// Some connections last for two seconds more, in case their client still sends: together.
test('refuses all others and runs nothing of them', { concurrency: true }, async (t) => {
  const workers = gateway.workers();
  const others = messageCases.filter(([, , , status]) => status !== 200);
  await Promise.all(others.map((one) => t.test(nameOf(one), () => judgeInPieces(one))));
  assert.equal((await gateway.db({ SQL: 'select 1' })).status, 200);
  assert.deepEqual(gateway.workers(), workers);
  assert.ok(proxy.statements.every((statement) => !statement.includes('never')));
});
