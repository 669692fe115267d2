// More clients than the database can serve: shed early with a time to come again, while health and metrics answer.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { eventually } from '../../support/eventually.ts';
import { openRaw, type RawConnection, type RawReply } from '../../support/http.ts';
import { useGateway } from '../../support/use-gateway.ts';
import { probe } from './support/probe.ts';

/** DBHTTPD_TEST_CROWD=2000 makes it one. */
const crowd = Number(process.env.DBHTTPD_TEST_CROWD ?? 300);
const statementMs = 200;
const pool = 2;
const queue = 50;
/** The gateway estimates over five seconds: later replies derive from what it has served under load. */
const [servedFirst, servedInAll] = [50, 70];
/** A second by the contract; four times as much is for a busy machine. */
const maxMs = 4000;

const { gateway } = useGateway({ workers: 1, pool, queue });

test(`${crowd} clients on a full queue: 503 with Retry-After, health and metrics within 1 s`, async () => {
  const asked = JSON.stringify({ SQL: `select sleep(${statementMs / 1000})` });
  const bytes = `GET /db?${encodeURIComponent(asked)} HTTP/1.1\r\nHost: localhost\r\n\r\n`;
  const replies: { atMs: number; reply: RawReply }[] = [];
  const startedAt = performance.now();
  let pressing = true;
  const press = async (connection: RawConnection) => {
    while (pressing) {
      connection.send(bytes);
      const reply = await connection.reply();
      replies.push({ atMs: performance.now() - startedAt, reply });
      // A pace, not a wait: clients return after their Retry-After.
      if (reply.status === 503) await pause(1500);
    }
  };
  const paths = ['/livez', '/readyz', '/metrics'];
  const probing = probe({ port: gateway.port, paths, rounds: 5 });
  const connections: RawConnection[] = [];
  const clients: Promise<void>[] = [];
  // Each connection asks as soon as it is open, and more come when those are shed. All of them in one instant would measure how fast a
  // machine compiles a worker's first two thousand requests.
  while (connections.length < crowd) {
    const come = await Promise.all(Array.from({ length: 100 }, () => openRaw(gateway.port)));
    connections.push(...come);
    clients.push(...come.map(press));
    await eventually(
      'those who have come are shed',
      () => replies.length + pool + queue >= connections.length,
    );
  }
  const probed = await probing;
  const served = () => replies.filter(({ reply }) => reply.status === 200);
  await eventually('enough are served and shed', () => {
    return served().length >= servedInAll && replies.length > 2 * crowd;
  });
  pressing = false;
  await Promise.all(clients);
  for (const { socket } of connections) socket.destroy();

  for (const { path, status, ms } of probed) {
    assert.equal(status, 200, path);
    assert.ok(ms < maxMs, `${path} after ${ms} ms`);
  }
  const shed = replies.filter(({ reply }) => reply.status === 503);
  assert.ok(shed.length > crowd);
  assert.ok(replies.every(({ reply }) => reply.status === 200 || reply.status === 503));
  const waits = shed.map(({ reply }) => Number(reply.header('retry-after')));
  assert.ok(waits.every((seconds) => seconds >= 1 && seconds <= 30));
  // Once a rate is known: the waiting requests, at that rate.
  const fromMs = served()[servedFirst]?.atMs ?? 0;
  const untilMs = served().at(-1)?.atMs ?? 0;
  const perSecond = (served().length - servedFirst) / ((untilMs - fromMs) / 1000);
  const late = shed
    .filter(({ atMs }) => atMs > fromMs && atMs < untilMs)
    .map(({ reply }) => Number(reply.header('retry-after')));
  const expected = queue / perSecond;
  const middle = late.sort((left, right) => left - right)[late.length >> 1] ?? 0;
  assert.ok(
    middle >= expected / 2 - 1 && middle <= expected * 2 + 1,
    `${middle} s, expected ${expected} s`,
  );
});
