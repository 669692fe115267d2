// A connection with very many answers at once lets other work run, and reads on afterwards unless a caller has paused it.
import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { type ArenaReader, Connection } from '../../../../src/shared/mysql/connection.ts';
import { discardResults, QueryCommand } from '../../../../src/shared/mysql/query.ts';
import { flags, okPacket, toBytes } from '../../../support/database/mysql-answer.ts';

function open() {
  const arenaReader: ArenaReader = { receive: () => {} };
  const socket = new Duplex({ read: () => {}, write: (_bytes, _encoding, done) => done() });
  const calls: string[] = [];
  socket.pause = () => {
    calls.push('pause');
    return socket;
  };
  socket.resume = () => {
    calls.push('resume');
    return socket;
  };
  const connection = new Connection({
    socket: socket as Socket,
    threadId: 1,
    serverVersion: '10.11.0-MariaDB',
    extendedMetadata: false,
    hasQueryAttributes: false,
    isRemembered: false,
    arenaReader,
    end: () => {},
  });
  let results = 0;
  const sink = {
    ...discardResults,
    ok: () => {
      results += 1;
    },
  };
  const events = { answered: () => {}, lost: (reason: Error) => assert.fail(reason) };
  connection.send(new QueryCommand('do 1; do 1 …', connection, sink, events));
  let sequence = 1;
  const bring = (count: number) => {
    const packets = Array.from({ length: count }, () =>
      okPacket(0, 0, flags.autocommit | flags.more),
    );
    const bytes = toBytes(packets, sequence);
    sequence = (sequence + count) & 0xff;
    arenaReader.receive(bytes, 0, bytes.length);
  };
  return { connection, calls, bring, results: () => results };
}

test('a few answers are read without a pause', async () => {
  const { calls, bring } = open();
  for (let read = 0; read < 5; read += 1) bring(1000);
  await turn();
  assert.deepEqual(calls, []);
});

test('after thousands of answers reading pauses for one round of the event loop', async () => {
  const { calls, bring, results } = open();
  bring(5000);
  bring(5000);
  assert.deepEqual(calls, ['pause']);
  await turn();
  assert.deepEqual(calls, ['pause', 'resume']);
  bring(5000);
  assert.deepEqual(calls, ['pause', 'resume']);
  assert.equal(results(), 15_000);
});

test('a connection that a caller has paused remains paused after that round', async () => {
  const { connection, calls, bring } = open();
  bring(10_000);
  connection.pause();
  await turn();
  assert.deepEqual(calls, ['pause', 'pause']);
  connection.resume();
  assert.deepEqual(calls, ['pause', 'pause', 'resume']);
  bring(10_000);
  connection.resume();
  assert.equal(calls.filter((call) => call === 'resume').length, 1, 'not before the turn is over');
  await turn();
  assert.equal(calls.filter((call) => call === 'resume').length, 2);
});
