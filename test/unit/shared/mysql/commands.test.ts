// A command whose answer is OK: anything else in its place ends the connection, and is never taken for success.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { commandCodes } from '../../../../src/shared/mysql/command-packets.ts';
import { onePacketCommand, RefusedError } from '../../../../src/shared/mysql/commands.ts';

/** Answers a reset in this way; returns the calls that follow. */
function answered(answer: readonly number[]): unknown[] {
  const seen: unknown[] = [];
  const command = onePacketCommand(commandCodes.resetConnection, '')(
    () => seen.push('done'),
    (error) => seen.push(error),
  );
  const bytes = Buffer.from(answer);
  assert.equal(command.handlePacket(bytes, 0, bytes.length), true);
  return seen;
}

test('OK is success, and an error is the reason', () => {
  assert.deepEqual(answered([0, 0, 0, 2, 0, 0, 0]), ['done']);
  const [error] = answered([0xff, 0x10, 0x04, ...Buffer.from('#08004no')]);
  assert.ok(error instanceof RefusedError && error.errno === 1040);
});

test('no other packet is success: not the header of a result, an end of rows, half an OK, nothing', () => {
  const behind = [0, 0, 2, 0, 0, 0];
  for (const answer of [[1], [1, ...behind], [0xfb, ...behind], [0xfe, ...behind], [0, 0], []]) {
    assert.throws(() => answered(answer), Error, answer.join());
  }
});
