// A hostile server during the handshake: the gateway takes a bounded amount from it, a fault ends only that connection, and the password is
// not sent under a key of the server's choice.
import assert from 'node:assert/strict';
import { generateKeyPairSync, privateDecrypt } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, test } from 'node:test';
import { openConnection } from '../../../src/shared/mysql/open-connection.ts';
import { createAuthority } from '../../support/certificates.ts';
import {
  endlessPacket,
  endlessPackets,
  type FakeMysql,
  flood,
  greetingPacket,
  type Misbehaviour,
  startFakeMysql,
} from '../../support/database/fake-mysql.ts';
import { okPacket, toBytes } from '../../support/database/mysql-answer.ts';
import { cases, fc } from '../../support/property.ts';
import { createWorkspace } from '../../support/workspace.ts';

const arena = Buffer.alloc(144 * 1024);
/** Bytes in the kernel's buffers count as sent. */
const maxTaken = 16 * 1024 * 1024;

let server: FakeMysql;
beforeEach(async () => {
  server = await startFakeMysql();
});
afterEach(() => server.stop());

/** Whether the server accepted the last connection because it remembers the password. */
let wasRemembered = false;

type Opened = { readonly code: string; readonly message: string };

/** Connects and closes again. Resolves to the reason of a failure. */
async function open(withTls = false, serverKeys: readonly string[] = []): Promise<Opened | null> {
  const { target } = server;
  const tls = withTls ? { verify: false, ca: null, cert: null, key: null } : null;
  const settings = { ...target, database: target.name, socket: null, tls };
  const signal = AbortSignal.timeout(5_000);
  try {
    const connection = await openConnection(
      { ...settings, serverKeys, connectTimeoutMs: 5_000, arena },
      signal,
    );
    wasRemembered = connection.isRemembered;
    connection.destroy(new Error('not needed any more'));
    return null;
  } catch (error) {
    return error as Opened;
  }
}

async function endedEarly(): Promise<void> {
  const client = server.clients.at(-1);
  assert.ok(client !== undefined);
  await new Promise((resolve) => {
    if (client.socket.closed) resolve(null);
    else client.socket.once('close', resolve);
  });
  assert.ok(client.flooded < maxTaken, `${client.flooded} bytes`);
}

const moreData = Buffer.from([1, 3]);
const floods: Readonly<Record<string, Misbehaviour>> = {
  'a greeting without end': { greet: (client) => flood(client, endlessPacket(0)) },
  'greetings without end': {
    greet: (client) => flood(client, endlessPackets(greetingPacket('x', false), 0)),
  },
  'an answer without end': {
    authenticate: (client, { sequence }) => {
      flood(client, endlessPacket(sequence + 1));
      return false;
    },
  },
  'answers without end': {
    authenticate: (client, { sequence }) => {
      flood(client, endlessPackets(moreData, sequence + 1));
      return false;
    },
  },
};

for (const [what, misbehaviour] of Object.entries(floods)) {
  test(`${what} before the login: the connection ends soon`, async () => {
    server.behave(misbehaviour);
    assert.ok((await open()) !== null);
    await endedEarly();
  });
}

test('the same behind TLS', async () => {
  const workspace = createWorkspace('tls', () => {});
  try {
    const { issue } = createAuthority(workspace.path);
    const files = issue('server');
    const tls = { cert: readFileSync(files.cert, 'utf8'), key: readFileSync(files.key, 'utf8') };
    server.behave({ tls });
    assert.equal(await open(true), null);
    server.behave({ ...floods['an answer without end'], tls });
    assert.equal((await open(true))?.code, 'PROTOCOL_VIOLATION');
    await endedEarly();
    server.behave({
      authenticate: ({ socket }) => !socket.write(toBytes([Buffer.alloc(10, 9)], 2)),
      tls,
    });
    assert.ok((await open(true)) !== null);
  } finally {
    workspace.remove();
  }
});

test('what a login announces or repeats without end is no reason to wait: the connection ends at once', async () => {
  const refuseWith = (bytes: Buffer): Misbehaviour => ({
    authenticate: ({ socket }) => !socket.write(bytes),
  });
  const again: Misbehaviour = {
    authenticate: (client, { sequence }) => {
      const change = '\u00femysql_native_password\0scramblescramblescra\0';
      client.send([Buffer.from(change, 'latin1')], sequence + 1);
      return false;
    },
  };
  for (const [misbehaviour, words] of [
    [greetWith('SSH-2.0-OpenSSH_9.2\r\n'), "another protocol than MySQL's"],
    [greetWith('HTTP/1.1 400 Bad Request\r\n\r\n'), "another protocol than MySQL's"],
    [greetWith('220 mail.example ESMTP\r\n'), "another protocol than MySQL's"],
    [refuseWith(Buffer.from([0, 0, 16, 2, 1])), 'announced a packet of more than 64 KiB'],
    [again, 'did not end after 16 packets'],
  ] as const) {
    server.behave(misbehaviour);
    const opened = await open();
    assert.equal(opened?.code, 'PROTOCOL_VIOLATION', words);
    assert.ok(opened.message.includes(words), opened.message);
  }
});

function greetWith(text: string): Misbehaviour {
  return { greet: ({ socket }) => void socket.write(text) };
}

/** Bytes that have been changed, cut out or put in. */
function mutated(bytes: Buffer): fc.Arbitrary<Buffer> {
  const change = fc.tuple(fc.nat(bytes.length), fc.nat(3), fc.uint8Array({ maxLength: 6 }));
  return fc.array(change, { minLength: 1, maxLength: 4 }).map((changes) => {
    let result = bytes;
    for (const [at, cut, put] of changes) {
      result = Buffer.concat([result.subarray(0, at), put, result.subarray(at + cut)]);
    }
    return result;
  });
}

test('any bytes in the place of a greeting or an answer end only their own connection', async () => {
  const answers = [
    okPacket(),
    Buffer.from('\u00fecaching_sha2_password\0scramblescramblescra\0', 'latin1'),
    Buffer.from('\u00fesha256_password\0short', 'latin1'),
    Buffer.from('\u00fe', 'latin1'),
    Buffer.from([1, 4]),
    Buffer.from('\u0002mysql_native_password\0', 'latin1'),
    Buffer.from('\u00ff\u0015\u0004#28000no', 'latin1'),
  ];
  const greetings = mutated(toBytes([greetingPacket('caching_sha2_password', false)], 0));
  const replies = fc.oneof(...answers.map((answer) => mutated(toBytes([answer], 2))));
  await fc.assert(
    fc.asyncProperty(fc.option(greetings), replies, async (greeting, reply) => {
      server.behave({
        ...(greeting === null ? {} : { greet: ({ socket }) => void socket.end(greeting) }),
        authenticate: ({ socket }) => {
          socket.end(reply);
          return false;
        },
      });
      await open();
    }),
    { numRuns: cases(150) },
  );
  server.behave({});
  assert.equal(await open(), null);
});

const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString();
const other = generateKeyPairSync('rsa', { modulusLength: 2048 });
const otherPem = other.publicKey.export({ type: 'spki', format: 'pem' }).toString();
const keyLength = 256;

/** Requests the password by a method that makes the client ask for the server's key. Returns the packets that came. */
function askForPassword(plugin: string): Buffer[] {
  const came: Buffer[] = [];
  const change = Buffer.concat([
    Buffer.from(`\u00fe${plugin}\0`, 'latin1'),
    Buffer.alloc(20, 's'),
    Buffer.from([0]),
  ]);
  const full = Buffer.from([1, 4]);
  const steps = plugin === 'sha256_password' ? [change] : [change, full];
  server.behave({
    plugin,
    authenticate: (client, { payload, sequence }, before) => {
      came.push(payload);
      const isOver = payload.length === keyLength;
      const step = steps[before] ?? Buffer.concat([Buffer.from([1]), Buffer.from(pem)]);
      client.send([isOver ? okPacket() : step], sequence + 1);
      return isOver;
    },
  });
  return came;
}

for (const plugin of ['caching_sha2_password', 'sha256_password']) {
  const token = plugin === 'sha256_password' ? [] : [32];

  test(`${plugin}: the password never leaves under a key that the server has sent, on this machine too`, async () => {
    const came = askForPassword(plugin);
    const refused = await open();
    assert.equal(refused?.code, 'INSECURE_PASSWORD');
    assert.match(refused?.message ?? '', /set server_public_key .*, tls, or socket/);
    const lengths = came.slice(1).map(({ length }) => length);
    assert.deepEqual(lengths, token, 'a token at most, and no question');
  });

  test(`${plugin}: under a pinned key the password leaves`, async () => {
    const came = askForPassword(plugin);
    assert.equal(await open(false, [otherPem, pem]), null);
    const sent = came.at(-1) ?? Buffer.alloc(0);
    const padded = privateDecrypt({ key: privateKey, oaepHash: 'sha1' }, sent);
    const plain = padded.map((byte) => byte ^ 's'.charCodeAt(0));
    assert.equal(Buffer.from(plain).toString(), `${server.target.password}\0`);
  });

  test(`${plugin}: a server that sends another key than the pinned one gets nothing`, async () => {
    const came = askForPassword(plugin);
    const refused = await open(false, [otherPem]);
    assert.equal(refused?.code, 'INSECURE_PASSWORD');
    const lengths = came.slice(1).map(({ length }) => length);
    assert.deepEqual(lengths, [...token, 1], 'a token at most, and the question for its key');
  });
}

test('a login that the server remembers needs no key, and the connection reports it', async () => {
  const change = `\u00fecaching_sha2_password\0${'s'.repeat(20)}\0`;
  server.behave({
    plugin: 'caching_sha2_password',
    authenticate: (client, { sequence }, before) => {
      if (before === 0) client.send([Buffer.from(change, 'latin1')], sequence + 1);
      else client.send([Buffer.from([1, 3]), okPacket()], sequence + 1);
      return before > 0;
    },
  });
  assert.equal(await open(), null);
  assert.equal(wasRemembered, true);
  assert.equal(await open(false, [pem]), null);
  assert.equal(wasRemembered, false);
});

test('the password is never sent in clear text', async () => {
  const came: Buffer[] = [];
  server.behave({
    plugin: 'mysql_clear_password',
    authenticate: (client, { payload, sequence }) => {
      came.push(payload);
      client.send([Buffer.from('\u00femysql_clear_password\0', 'latin1')], sequence + 1);
      return false;
    },
  });
  assert.equal((await open())?.code, 'MYSQL_CLEAR_PASSWORD_NOT_ENABLED');
  assert.ok(came.every((payload) => !payload.includes(server.target.password)));
});
