// A log line is one line, costs no wait, and survives rotation; what a disk refuses is counted.
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { openLog } from '../../../../src/shared/process/log.ts';
import { eventually } from '../../../support/eventually.ts';

const directory = mkdtempSync(join(tmpdir(), 'dbhttpd-log-'));
after(() => rmSync(directory, { recursive: true }));
const read = (path: string) => readFileSync(path, 'utf8');

test('control characters cannot forge a line or steer a terminal', () => {
  const path = join(directory, 'control.log');
  const log = openLog({ path }, 'info', 'me', 'batched');
  log.info('a\nb\u001b[31m', { field: 'c d\r\n"\u0085' });
  log.flush();
  const text = read(path);
  assert.equal(text.split('\n').length, 2);
  assert.match(text, /^\S+Z info \[me\] a\\u000ab\\u001b\[31m field="c d\\r\\n\\"\\u0085"\n$/);
});

test('less urgent lines than the level are left out', () => {
  const path = join(directory, 'level.log');
  const log = openLog({ path }, 'warn', 'me', 'batched');
  log.debug?.('a');
  log.info('b');
  log.warn('c');
  log.error('d');
  log.flush();
  assert.deepEqual(
    [...read(path).matchAll(/\] (\w)/g)].map((match) => match[1]),
    ['c', 'd'],
  );
});

test('a log is created with its directory, not for others to read, and appended to', () => {
  const path = join(directory, 'deep/er/x.log');
  for (const word of ['first', 'second']) {
    const log = openLog({ path }, 'info', 'me', 'batched');
    log.info(word);
    log.flush();
  }
  assert.match(read(path), /first[\s\S]*second/);
});

test('no line is lost when the log is reopened under a stream of lines', async () => {
  const path = join(directory, 'rotated.log');
  const log = openLog({ path }, 'info', 'me', 'batched');
  for (let line = 0; line < 1000; line += 1) {
    log.info(`line ${line} `);
    if (line % 100 === 50) {
      await eventually('the disk has a batch', () => statSync(path).size > 0, { everyMs: 1 });
      renameSync(path, `${path}.${line}`);
      log.reopen();
      assert.ok(existsSync(path));
    }
  }
  log.flush();
  const files = [path, ...Array.from({ length: 10 }, (_, index) => `${path}.${index * 100 + 50}`)];
  const missing = () => {
    const all = files.map(read).join('');
    return Array.from({ length: 1000 }, (_, line) => line).filter(
      (line) => !all.includes(`] line ${line} \n`),
    );
  };
  // A batch that was in progress during the flush ends by itself.
  await eventually('every line is in a file', () => missing().length === 0);
  assert.equal(log.lost(), 0);
});

test('lines that a full disk refuses are counted, and nothing throws', () => {
  const log = openLog({ path: '/dev/full' }, 'info', 'me', 'batched');
  log.info('a');
  log.info('b');
  log.flush();
  assert.equal(log.lost(), 2);
});

test('a buffer that the disk does not empty is bounded', () => {
  const log = openLog({ path: join(directory, 'bounded.log') }, 'info', 'me', 'batched');
  for (let line = 0; line < 3000; line += 1) log.info('x'.repeat(1000));
  assert.ok(log.lost() > 1000);
});
