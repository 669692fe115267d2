// Whether an idle connection is alive, when this process was paused meanwhile.
import assert from 'node:assert/strict';
import { performance } from 'node:perf_hooks';
import { test } from 'node:test';
import { proveAlive } from '../../../../../src/worker/servers/pool/connecting.ts';
import {
  createScriptedConnection,
  type ScriptedAnswer,
} from '../../../support/scripted-connection.ts';

test('an answer that has come while the process was paused counts, and a missing one does not', async (t) => {
  const start = performance.now();
  let now = start;
  t.mock.method(performance, 'now', () => now);
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const ask = (answer: ScriptedAnswer) => {
    const connection = createScriptedConnection(() => answer);
    now = start;
    const proved = proveAlive(connection);
    now = start + 60_000;
    t.mock.timers.tick(1_000);
    return proved;
  };
  await ask('ok');
  await assert.rejects(ask('silence'), /did not answer/);
});
