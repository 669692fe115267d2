// Lines reach their file whole, or are counted as lost and reported later: on a full disk, in a file that was removed, on a shared pipe.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { LineWriter } from '../../../../src/shared/process/line-writer.ts';
import { eventually } from '../../../support/eventually.ts';
import { mountSmallDisk } from '../../../support/small-disk.ts';

const lineWriterUrl = new URL('../../../../src/shared/process/line-writer.js', import.meta.url)
  .href;

test('on a full disk every line is written or counted, and writing continues when there is room', async (t) => {
  const disk = mountSmallDisk(t);
  if (disk === null) return;
  const path = join(disk, 'log');
  const filler = join(disk, 'filler');
  writeFileSync(filler, 'x'.repeat(40_000));
  const reported: number[] = [];
  const writer = new LineWriter(path, (lost) => reported.push(lost));
  for (let line = 0; line < 1000; line += 1) writer.write(`line ${line} ${'.'.repeat(90)}\n`);
  await eventually('lines are lost', () => writer.lost() > 0);
  rmSync(filler);
  writer.write('there is room again\n');
  await eventually('it goes on', () =>
    readFileSync(path, 'utf8').endsWith('there is room again\n'),
  );
  const whole = readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => /^line \d+ \.{90}$/.test(line));
  assert.ok(whole.length > 100);
  assert.equal(whole.length + writer.lost(), 1000);
  const sum = () => reported.reduce((all, lost) => all + lost, 0);
  await eventually('it is reported', () => sum() === writer.lost());
  const times = reported.length;
  writer.write('no more is lost\n');
  writer.flush();
  assert.equal(reported.length, times);
});

for (const [how, write] of [
  ['at once', async (writer: LineWriter) => writer.flush()],
  ['in batches', async () => {}],
] as const) {
  test(`lines for a file that was removed are counted once it cannot be reopened, and reported (${how})`, async (t) => {
    const directory = mkdtempSync(join(tmpdir(), 'dbhttpd-lines-'));
    t.after(() => rmSync(directory, { recursive: true }));
    const path = join(directory, 'log');
    const reported: number[] = [];
    const writer = new LineWriter(path, (lost) => reported.push(lost));
    const put = async (line: string) => {
      writer.write(line);
      await write(writer);
    };
    writer.write('before\n');
    writer.flush();
    rmSync(path);
    // No file can be opened there.
    mkdirSync(path);
    assert.notEqual(writer.reopen(), null);
    await put('one\ntwo\n');
    await eventually('they are counted', () => writer.lost() === 2);
    assert.deepEqual(reported, []);
    rmdirSync(path);
    assert.equal(writer.reopen(), null);
    await put('after\n');
    await eventually('they are reported', () => reported.length > 0);
    assert.deepEqual(reported, [2]);
    assert.equal(readFileSync(path, 'utf8'), 'after\n');
    assert.equal(writer.lost(), 2);
  });
}

test('lines for a file that cannot be reopened but has its name are not lost', (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'dbhttpd-lines-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const [path, moved] = [join(directory, 'log'), join(directory, 'log.1')];
  const writer = new LineWriter(path);
  renameSync(path, moved);
  mkdirSync(path);
  assert.notEqual(writer.reopen(), null);
  writer.write('kept\n');
  writer.flush();
  assert.equal(readFileSync(moved, 'utf8'), 'kept\n');
  assert.equal(writer.lost(), 0);
});

test('lines of several processes on one pipe are not mixed', async () => {
  const write = `
    const { LineWriter } = await import(process.argv[1]);
    const writer = new LineWriter(1);
    for (let line = 0; line < 3000; line += 1) writer.write(process.argv[2].repeat(99) + '\\n');
    process.stdin.resume().once('end', () => writer.flush());`;
  const shell = 'exec 3<&0; "$0" -e "$1" "$2" a <&3 & "$0" -e "$1" "$2" b <&3 & wait';
  const child = spawn('sh', ['-c', shell, process.execPath, write, lineWriterUrl], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (piece: string) => {
    text += piece;
  });
  const closed = once(child, 'close');
  await eventually('both have written', () => text.length >= 6000 * 100);
  child.stdin.end();
  await closed;
  const lines = text.split('\n').slice(0, -1);
  assert.equal(lines.length, 6000);
  assert.ok(lines.every((line) => line.length === 99 && /^(a+|b+)$/.test(line)));
});
