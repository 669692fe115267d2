// Calls between two processes: each answer reaches its caller, and every wait ends.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type Answer,
  answerCall,
  type Call,
  Caller,
} from '../../../../src/shared/process/calls.ts';

type Table = {
  readonly double: { readonly asked: number; readonly answer: number };
  readonly name: { readonly asked: null; readonly answer: string };
};

test('each answer reaches its caller, in any order', async () => {
  const sent: Call<Table>[] = [];
  const caller = new Caller<Table>((call) => sent.push(call), 5_000);
  const answers = Promise.all([
    caller.ask('double', 2),
    caller.ask('name', null),
    caller.ask('double', 4),
  ]);
  const back: Answer<Table>[] = [];
  for (const call of [...sent].reverse()) {
    const answerers = { double: (asked: number) => 2 * asked, name: () => Promise.resolve('me') };
    await answerCall<Table>(answerers, call, (answer) => back.push(answer), assert.fail);
  }
  for (const answer of back) caller.answered(answer);
  assert.deepEqual(await answers, [4, 'me', 8]);
});

test('a call without an answer in time, or to a process that is gone, is null, and a late answer is ignored', async () => {
  const sent: Call<Table>[] = [];
  const late = new Caller<Table>((call) => sent.push(call), 1);
  assert.equal(await late.ask('double', 2), null);
  late.answered({ kind: 'answer', id: sent[0]?.id ?? 0, answer: 4 });
  const abandoned = new Caller<Table>(() => {}, 60_000);
  const answer = abandoned.ask('name', null);
  abandoned.abandon();
  assert.equal(await answer, null);
});

test('an exception ends its call without an answer, and is reported', async () => {
  const back: Answer<Table>[] = [];
  const faults: unknown[] = [];
  const broken = () => {
    throw new Error('broken');
  };
  const call = { kind: 'call', id: 7, name: 'name', asked: null } as const;
  await answerCall<Table>(
    { double: broken, name: broken },
    call,
    (answer) => back.push(answer),
    (name, cause) => faults.push(name, (cause as Error).message),
  );
  assert.deepEqual(back, [{ kind: 'answer', id: 7, answer: null }]);
  assert.deepEqual(faults, ['name', 'broken']);
});
