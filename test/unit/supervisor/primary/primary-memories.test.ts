// An instance's memory of its primaries: one proposal wins, it is on disk before a worker receives it, and a broken file is no obstacle.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Log, LogFields } from '../../../../src/shared/process/log.ts';
import {
  formatPrimaryMemory,
  type PrimaryMemory,
  parsePrimaryMemory,
} from '../../../../src/shared/servers/primary-memory.ts';
import { replacePrimaryFile } from '../../../../src/supervisor/primary/primary-file.ts';
import {
  openPrimaryMemories,
  type PrimaryMemories,
  type Saving,
} from '../../../../src/supervisor/primary/primary-memories.ts';
import { eventually } from '../../../support/eventually.ts';

const section = 'world';
const first: PrimaryMemory = {
  version: 1,
  term: 1,
  primary: {
    address: '10.0.0.1:3306',
    identity: '10.0.0.1:3306/1',
    number: '1',
    startedAt: 1_700_000_000,
    taken: null,
    position: '0-1-10',
  },
  replicas: [],
  former: [],
};
const second: PrimaryMemory = {
  version: 2,
  term: 2,
  primary: { ...first.primary, address: '10.0.0.2:3306', identity: '10.0.0.2:3306/2', number: '2' },
  replicas: [],
  former: [first.primary.identity],
};
const moved: PrimaryMemory = {
  ...first,
  version: 2,
  primary: { ...first.primary, position: '0-1-11' },
};
/** The next of a memory, of another term. */
const after = (memory: PrimaryMemory): PrimaryMemory => ({
  ...memory,
  version: memory.version + 1,
  term: memory.term + 1,
});

let directory: string;
let stateDir: string;
let path: string;
let lines: string[];
let reported: { readonly memory: PrimaryMemory; readonly onDisk: PrimaryMemory | null }[];
const opened: PrimaryMemories[] = [];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'primaries-'));
  stateDir = join(directory, 'state');
  path = join(stateDir, `${section}.primary`);
  lines = [];
  reported = [];
});
afterEach(() => {
  for (const memories of opened.splice(0)) memories.freeze();
  rmSync(directory, { recursive: true });
});

function readDisk(): PrimaryMemory | null {
  return existsSync(path) ? parsePrimaryMemory(readFileSync(path, 'utf8')) : null;
}

function open(saving?: Saving): PrimaryMemories {
  const note = (text: string, fields: LogFields = {}) => {
    lines.push(`${text} ${JSON.stringify(fields)}`);
  };
  const log: Log = { error: note, warn: note, info: () => {}, debug: null, reopen: () => {} };
  const one = (host: string) => ({ host, port: 3306, socket: null });
  const kept = { section, stateDir, candidates: [one('10.0.0.1'), one('10.0.0.2')] } as const;
  const alone = { section: 'moon', stateDir, candidates: [one('10.0.0.3')] } as const;
  const tell = (name: string, memory: PrimaryMemory) => {
    assert.equal(name, section);
    reported.push({ memory, onDisk: readDisk() });
  };
  const memories = openPrimaryMemories([kept, alone], log, tell, saving);
  opened.push(memories);
  return memories;
}

function write(text: string): void {
  mkdirSync(stateDir, { recursive: true, mode: 0o700 });
  writeFileSync(path, text, { mode: 0o600 });
}

test('a new primary is on disk before a worker receives it, for its user alone, and a successor remembers it', async () => {
  const memories = open();
  assert.deepEqual(memories.inForce(), {});
  const answer = await memories.propose({ section, base: null, memory: first });
  assert.deepEqual(answer, { isAccepted: true, memory: first });
  assert.deepEqual(reported, [{ memory: first, onDisk: first }]);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.equal(statSync(stateDir).mode & 0o777, 0o700);
  assert.deepEqual(readdirSync(stateDir), [`${section}.primary`]);
  assert.deepEqual(memories.inForce(), { [section]: first });
  assert.deepEqual(open().inForce(), { [section]: first });
  assert.deepEqual(lines, []);
});

test('of two proposals from the same memory one wins, and the other one gets it as its answer', async () => {
  const memories = open();
  const other = { ...first, primary: { ...first.primary, address: '10.0.0.2:3306' } };
  const answers = await Promise.all([
    memories.propose({ section, base: null, memory: first }),
    memories.propose({ section, base: null, memory: other }),
  ]);
  assert.deepEqual(answers, [
    { isAccepted: true, memory: first },
    { isAccepted: false, memory: first },
  ]);
  const late = await memories.propose({ section, base: null, memory: other });
  assert.deepEqual(late, { isAccepted: false, memory: first });
  assert.deepEqual(await memories.propose({ section, base: 1, memory: second }), {
    isAccepted: true,
    memory: second,
  });
  assert.deepEqual(readDisk(), second);
  assert.deepEqual(
    reported.map(({ memory }) => memory),
    [first, second],
  );
});

test('an answer leaves before the next change is announced: a worker gets both in their order', async () => {
  const memories = open();
  await memories.propose({ section, base: null, memory: first });
  const events: string[] = [];
  // The answer to a call is sent some turns of promises later.
  const answered = memories.propose({ section, base: 0, memory: second }).then(async (answer) => {
    for (let turn = 0; turn < 10; turn += 1) await null;
    events.push(`answered ${answer.memory?.version}, reported ${reported.length}`);
  });
  await Promise.all([answered, memories.propose({ section, base: 1, memory: moved })]);
  assert.deepEqual(events, ['answered 1, reported 1']);
  assert.equal(reported.length, 2);
});

test('a position that moves is in force at once, and on disk soon', async () => {
  const memories = open();
  await memories.propose({ section, base: null, memory: first });
  const answer = await memories.propose({ section, base: 1, memory: moved });
  assert.deepEqual(answer, { isAccepted: true, memory: moved });
  assert.deepEqual(reported.at(-1), { memory: moved, onDisk: first });
  await eventually('the position is on disk', () => readDisk()?.version === 2);
});

test('a replica that is seen for the first time is on disk at once', async () => {
  const memories = open();
  await memories.propose({ section, base: null, memory: first });
  const follows = { number: '1', uuid: null, address: null };
  const memory = { ...moved, replicas: [{ identity: '10.0.0.2:3306/2', follows, term: 1 }] };
  await memories.propose({ section, base: 1, memory });
  assert.deepEqual(reported.at(-1), { memory, onDisk: memory });
});

test('an instance that is ending writes no more, and reads what its successor writes', async () => {
  const leaving = open();
  await leaving.propose({ section, base: null, memory: first });
  await leaving.propose({ section, base: 1, memory: moved });
  leaving.freeze();
  const successor = open();
  assert.deepEqual(successor.inForce(), { [section]: first });
  const refused = { isAccepted: false, memory: moved };
  assert.deepEqual(await leaving.propose({ section, base: 2, memory: after(moved) }), refused);
  assert.deepEqual(readDisk(), first);
  assert.equal(await leaving.override(section, second.primary), null);
  await successor.propose({ section, base: 1, memory: second });
  reported = [];
  const taught = await leaving.propose({ section, base: 2, memory: after(moved) });
  assert.deepEqual(taught, { isAccepted: false, memory: second });
  assert.deepEqual(reported, [{ memory: second, onDisk: second }]);
  assert.deepEqual(leaving.inForce(), { [section]: second });
});

test('a proposal that is being written when the instance begins to end is refused, and the file is unchanged', async () => {
  const memories = open();
  await memories.propose({ section, base: null, memory: first });
  const proposal = memories.propose({ section, base: 1, memory: second });
  memories.freeze();
  assert.deepEqual(await proposal, { isAccepted: false, memory: first });
  assert.deepEqual(readDisk(), first);
  assert.equal(reported.length, 1);
});

const damages: Readonly<Record<string, () => void>> = {
  damaged: () => write(formatPrimaryMemory(first).slice(0, -9)),
  empty: () => write(''),
  'open to other writers': () => {
    write(formatPrimaryMemory(first));
    chmodSync(path, 0o620);
  },
  'a symbolic link': () => {
    write('');
    rmSync(path);
    writeFileSync(join(directory, 'elsewhere'), formatPrimaryMemory(first), { mode: 0o600 });
    symlinkSync(join(directory, 'elsewhere'), path);
  },
};
for (const [what, damage] of Object.entries(damages)) {
  test(`a file that is ${what} is ignored, logged, and replaced`, async () => {
    damage();
    const memories = open();
    assert.deepEqual(memories.inForce(), {});
    assert.match(
      lines.join('\n'),
      /^the memory of the last primary cannot be used: it is ignored /,
    );
    await memories.propose({ section, base: null, memory: first });
    assert.deepEqual(readDisk(), first);
    assert.equal(statSync(path).mode & 0o777, 0o600);
    assert.equal(memories.unsaved(), 0);
  });
}

test('if the file cannot be written, the memory lives in the instance, which logs that once, and is saved as soon as possible', async () => {
  writeFileSync(stateDir, '');
  const memories = open();
  lines = [];
  const answer = await memories.propose({ section, base: null, memory: first });
  assert.deepEqual(answer, { isAccepted: true, memory: first });
  await memories.propose({ section, base: 1, memory: second });
  assert.deepEqual(memories.inForce(), { [section]: second });
  assert.equal(memories.unsaved(), 1);
  assert.equal(lines.length, 1, lines.join('\n'));
  assert.match(`${lines[0]}`, /cannot be saved: it lives as long as this instance .*"reason":"E/);
  rmSync(stateDir);
  await memories.propose({ section, base: 2, memory: after(second) });
  assert.equal(memories.unsaved(), 0);
  assert.deepEqual(readDisk(), after(second));
});

for (const proposals of [[first], [first, second]] as const) {
  const many = proposals.length === 1 ? 'one memory' : 'two memories';
  test(`a disk that does not answer holds ${many} up for a moment, and has the latest once it answers`, async () => {
    let answer = () => {};
    const stuck = new Promise<void>((resolve) => {
      answer = resolve;
    });
    const replace: Saving['replace'] = async (...given) => {
      await stuck;
      return replacePrimaryFile(...given);
    };
    const memories = open({ replace, boundMs: 20, lazyMs: 20, retryMs: 20 });
    for (const memory of proposals) {
      const base = memory.version === 1 ? null : memory.version - 1;
      assert.deepEqual(await memories.propose({ section, base, memory }), {
        isAccepted: true,
        memory,
      });
    }
    assert.deepEqual([memories.unsaved(), readDisk()], [1, null]);
    assert.match(lines.join('\n'), /cannot be saved: .*the disk does not answer/);
    answer();
    await eventually('the latest is on disk', () => readDisk()?.version === proposals.length);
    await eventually('it is known to be saved', () => memories.unsaved() === 0);
  });
}

test('a directory that others may write to is not used', async () => {
  mkdirSync(stateDir);
  chmodSync(stateDir, 0o777);
  const memories = open();
  await memories.propose({ section, base: null, memory: first });
  assert.equal(memories.unsaved(), 1);
  assert.match(lines.join('\n'), /others may write to /);
  assert.deepEqual(readdirSync(stateDir), []);
});

test('another instance that writes to the same file is noticed', async () => {
  const [one, other] = [open(), open()];
  await one.propose({ section, base: null, memory: first });
  await other.propose({ section, base: null, memory: { ...first, term: 2 } });
  assert.match(lines.join('\n'), /another instance writes to the memory of the last primary/);
});

test('a proposal that could not be read again is rejected, and a section with one server has no memory', async () => {
  const memories = open();
  const odd: readonly PrimaryMemory[] = [
    { ...first, version: 2 },
    { ...first, former: [first.primary.identity] },
    { ...first, primary: { ...first.primary, position: 'nonsense' } },
  ];
  for (const memory of odd) {
    await assert.rejects(memories.propose({ section, base: null, memory }), /no next memory/);
  }
  const moon = memories.propose({ section: 'moon', base: null, memory: first });
  await assert.rejects(moon, /no memory/);
  assert.deepEqual([memories.inForce(), existsSync(stateDir)], [{}, false]);
});

test('an operator overrides the memory: an earlier proposal is refused', async () => {
  const memories = open();
  await memories.propose({ section, base: null, memory: first });
  const { taken: _taken, ...primary } = second.primary;
  const overridden = await memories.override(section, primary);
  assert.equal(overridden?.isSaved, true);
  assert.deepEqual(overridden?.before, first);
  assert.deepEqual(reported.at(-1), { memory: overridden?.memory, onDisk: overridden?.memory });
  const late = await memories.propose({ section, base: 1, memory: moved });
  assert.deepEqual(late, { isAccepted: false, memory: overridden?.memory });
  assert.deepEqual(overridden?.memory.primary.address, second.primary.address);
  assert.equal(await memories.override('moon', primary), null);
});

/** Runs a module that ends itself by SIGKILL; `from` has the modules that it may name. */
function runAndKill(source: string): void {
  const from = (name: string) =>
    JSON.stringify(
      fileURLToPath(new URL(`../../../../src/supervisor/primary/${name}.js`, import.meta.url)),
    );
  const head = `
    const { openPrimaryMemories } = await import(${from('primary-memories')});
    const { replacePrimaryFile } = await import(${from('primary-file')});
    const [path, stateDir, memory] = process.argv.slice(1);
    const die = () => process.kill(process.pid, 'SIGKILL');
    const host = (name) => ({ host: name, port: 3306, socket: null });
    const quiet = { error() {}, warn() {}, info() {}, debug: null, reopen() {} };
    const sections = [{ section: 'world', stateDir, candidates: [host('a'), host('b')] }];`;
  const args = ['--input-type=module', '-e', `${head}\n${source}`];
  const given = [path, stateDir, JSON.stringify(second)];
  const { signal, stderr } = spawnSync(process.execPath, [...args, ...given], { encoding: 'utf8' });
  assert.equal(signal, 'SIGKILL', stderr);
}

test('a kill between the write and the answer leaves the new memory', () => {
  write(formatPrimaryMemory(first));
  runAndKill(`
    const memories = openPrimaryMemories(sections, quiet, die);
    await memories.propose({ section: 'world', base: 1, memory: JSON.parse(memory) });`);
  assert.deepEqual(open().inForce(), { [section]: second });
});

test('a kill before the file has its name leaves the earlier memory, and the unfinished file is never read', async () => {
  write(formatPrimaryMemory(first));
  runAndKill('await replacePrimaryFile(path, JSON.parse(memory), die);');
  assert.deepEqual(parsePrimaryMemory(readFileSync(`${path}.new`, 'utf8')), second);
  const memories = open();
  assert.deepEqual(memories.inForce(), { [section]: first });
  writeFileSync(`${path}.new`, formatPrimaryMemory(second).slice(0, 40));
  assert.deepEqual(open().inForce(), { [section]: first });
  await memories.propose({ section, base: 1, memory: second });
  assert.deepEqual(readDisk(), second);
  assert.deepEqual(readdirSync(stateDir), [`${section}.primary`]);
  assert.deepEqual(lines, []);
});

test('a memory that is given up is not in the file', async () => {
  write(formatPrimaryMemory(first));
  assert.equal(await replacePrimaryFile(path, second, () => false), false);
  assert.deepEqual(readDisk(), first);
});
