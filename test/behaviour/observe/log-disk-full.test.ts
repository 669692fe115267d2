// A full log disk costs log lines, not requests; metrics and, once there is room again, the log itself say how many.
import assert from 'node:assert/strict';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { startGateway } from '../../support/gateway.ts';
import { mountSmallDisk } from '../../support/small-disk.ts';
import { useDatabase } from '../../support/use-gateway.ts';

const database = useDatabase();

test('requests are answered while no log line can be written', async (t) => {
  const disk = mountSmallDisk(t);
  if (disk === null) return;
  const log = join(disk, 'world.log');
  const settings = { workers: 1, log, access_log: 'json', slow_query: '1ms' };
  const gateway = await startGateway({ database, settings });
  try {
    const ask = async () => {
      const { status } = await gateway.db({ SQL: 'select sleep(0.002)' });
      assert.equal(status, 200);
    };
    const filler = join(disk, 'filler');
    assert.throws(() => writeFileSync(filler, 'x'.repeat(100_000)), /ENOSPC/);
    for (let round = 0; round < 30; round += 1) await Promise.all(Array.from({ length: 10 }, ask));
    const lost = (name: string, text: string) =>
      Number(new RegExp(`^dbhttpd_${name}\\{[^}]*\\} (\\d+)`, 'm').exec(text)?.[1]);
    await eventually('the lost lines are counted', async () => {
      const { text } = await gateway.get('/metrics');
      return (
        lost('access_log_lines_lost_total', text) > 100 && lost('log_lines_lost_total', text) > 100
      );
    });

    rmSync(filler);
    const id = { 'X-Request-ID': 'again' };
    await gateway.db({ SQL: 'select 1' }, { headers: id });
    const lines = await eventually('a line is written again', () => {
      const text = readFileSync(join(disk, 'world.access.log'), 'utf8');
      return text.includes('"again"') ? text.trimEnd().split('\n') : null;
    });
    assert.equal(JSON.parse(lines.at(-1) ?? '').request_id, 'again');
    await eventually('the log says how many lines are missing', async () => {
      await ask();
      const text = readFileSync(log, 'utf8');
      const reported = (what: string) =>
        Number(new RegExp(` warn .*lines of ${what} were lost lines=(\\d+)`).exec(text)?.[1]);
      return reported('this log') > 100 && reported('the access log') > 100;
    });
  } finally {
    await gateway.stop();
  }
});
