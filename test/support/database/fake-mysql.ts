// A fake MySQL server: it accepts every login, answers the gateway's own questions, and misbehaves as a test chooses.
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { errorPacket, okPacket, resultSet, toBytes } from './mysql-answer.ts';
import { createSplitter, type Packet, queryAttributes, readQuery } from './mysql-wire.ts';

/** One connection to the server; over TLS once that has begun. */
export type FakeClient = {
  readonly socket: Socket;
  /** Sends payloads as packets, numbered from `sequence`. */
  readonly send: (payloads: readonly Buffer[], sequence: number) => void;
  /** Bytes that the network took of `flood`. */
  flooded: number;
  /** The capabilities that the client requested: before TLS, if it has begun, and after it. */
  readonly asked: number[];
  /** The payloads of the commands that the client sent after its login. */
  readonly commands: Buffer[];
};

/** The parts of the server's behaviour that a test replaces. */
export type Misbehaviour = {
  /** Replaces the greeting. */
  readonly greet?: (client: FakeClient) => void;
  /** Replaces the login: gets the client's last packet, and the number of packets before it. Returns whether the login is complete. */
  readonly authenticate?: (client: FakeClient, packet: Packet, before: number) => boolean;
  /** Replaces the usual answer; false: gives the usual one. */
  readonly answer?: (client: FakeClient, statement: string) => boolean;
  /** The method named in the greeting. */
  readonly plugin?: string;
  /** The version in its greeting. */
  readonly version?: string;
  /** Whether it offers query attributes. */
  readonly withAttributes?: boolean;
  /** PEM, for TLS. */
  readonly tls?: { readonly cert: string; readonly key: string };
};

/** A listening server. The caller must stop it. */
export type FakeMysql = {
  readonly target: { host: string; port: number; user: string; password: string; name: string };
  readonly clients: FakeClient[];
  /** Changes what it does, for connections and statements from now on. */
  readonly behave: (misbehaviour: Misbehaviour) => void;
  readonly stop: () => Promise<void>;
};

const capabilities = {
  protocol41: 1 << 9,
  tls: 1 << 11,
  secure: 1 << 15,
  pluginAuth: 1 << 19,
  database: 1 << 3,
  multi: 3 << 16,
};
const comQuery = 3;
const scramble = Buffer.alloc(20, 'scramble');

/** The server's first packet. */
export function greetingPacket(
  plugin: string,
  withTls: boolean,
  { version = '8.0.0-fake', withAttributes = false }: Misbehaviour = {},
): Buffer {
  const { protocol41, tls, secure, pluginAuth, database, multi } = capabilities;
  const more = (withTls ? tls : 0) | (withAttributes ? queryAttributes : 0);
  const flags = protocol41 | secure | pluginAuth | database | multi | more;
  const bytes = Buffer.alloc(31);
  bytes.writeUInt32LE(7, 0);
  scramble.copy(bytes, 4, 0, 8);
  bytes.writeUInt16LE(flags & 0xffff, 13);
  bytes.writeUInt8(45, 15);
  bytes.writeUInt16LE(2, 16);
  bytes.writeUInt16LE(flags >>> 16, 18);
  bytes.writeUInt8(21, 20);
  const rest = [scramble.subarray(8), Buffer.from([0]), Buffer.from(`${plugin}\0`)];
  return Buffer.concat([Buffer.from(`\n${version}\0`, 'latin1'), bytes, ...rest]);
}

/** Starts it on a port of the loopback address. */
export async function startFakeMysql(first: Misbehaviour = {}): Promise<FakeMysql> {
  let misbehaviour = first;
  const clients: FakeClient[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.setNoDelay(true);
    const client = serve(socket, () => misbehaviour);
    clients.push(client);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    target: { host: '127.0.0.1', port, user: 'app', password: 'secret', name: 'd' },
    clients,
    behave: (next) => {
      misbehaviour = next;
    },
    stop: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

function serve(raw: Socket, behaviour: () => Misbehaviour): FakeClient {
  const client = {
    socket: raw,
    flooded: 0,
    asked: [] as number[],
    commands: [] as Buffer[],
    send: (_payloads: readonly Buffer[], _from: number) => {},
  };
  client.send = (payloads, sequence) => void client.socket.write(toBytes(payloads, sequence));
  const greeted = behaviour();
  const { greet, plugin = 'mysql_native_password', tls } = greeted;
  raw.on('error', () => {});
  const splitter = createSplitter();
  let packets = 0;
  let isIn = false;
  const take = (bytes: Buffer) => {
    for (const packet of splitter.push(bytes)) {
      if (isIn) {
        command(client, packet, greeted, behaviour());
        continue;
      }
      if (packets === 0) client.asked.push(packet.payload.readUInt32LE(0));
      if (tls !== undefined && packet.payload.length === 32) encrypt(tls);
      else isIn = letIn(client, packet, packets++, behaviour());
    }
  };
  const encrypt = (pair: { cert: string; key: string }) => {
    raw.off('data', take);
    const rest = splitter.takeRest();
    raw.pause();
    if (rest.length > 0) raw.unshift(rest);
    const secure = new TLSSocket(raw, { isServer: true, ...pair });
    secure.on('error', () => {});
    secure.on('data', take);
    client.socket = secure;
  };
  raw.on('data', take);
  if (greet === undefined) client.send([greetingPacket(plugin, tls !== undefined, greeted)], 0);
  else greet(client);
  return client;
}

/** Whether the login is complete. */
function letIn(
  client: FakeClient,
  packet: Packet,
  before: number,
  { authenticate }: Misbehaviour,
): boolean {
  if (authenticate === undefined) {
    client.send([okPacket()], packet.sequence + 1);
    return true;
  }
  return authenticate(client, packet, before);
}

function command(
  client: FakeClient,
  { payload }: Packet,
  { withAttributes = false }: Misbehaviour,
  { answer }: Misbehaviour,
): void {
  client.commands.push(payload);
  if (payload[0] !== comQuery) {
    client.send([okPacket()], 1);
    return;
  }
  const isAsked = ((client.asked.at(-1) ?? 0) & queryAttributes) !== 0;
  const { statement } = readQuery(payload, withAttributes && isAsked);
  if (answer?.(client, statement) !== true) client.send(usualAnswer(statement), 1);
}

const known: readonly (readonly [asked: RegExp, cells: readonly string[]])[] = [
  [/@@hostname/i, ['fake', '3306', '1', '1700000000']],
  [/'Uptime'/i, ['Uptime', '100']],
  [/^select @@max_allowed_packet$/i, ['16777216']],
  [/^select 1$/i, ['1']],
];

function usualAnswer(statement: string): readonly Buffer[] {
  if (/current_role/i.test(statement)) return [errorPacket(1305, 'no such function')];
  const cells = known.find(([asked]) => asked.test(statement))?.[1];
  if (cells !== undefined)
    return resultSet(
      cells.map((_cell, n) => ({ name: `c${n}` })),
      [cells],
    );
  return /^(select|show)/i.test(statement) ? resultSet([{}], []) : [okPacket()];
}

/** The end of a flood, for a client that takes all of it. */
export const maxFlooded = 256 * 1024 * 1024;
const piece = Buffer.alloc(64 * 1024, 1);

/** Sends the pieces one after the other, for as long as there are any and the client takes them. */
export function flood(client: FakeClient, pieces: Iterator<Buffer>): void {
  const { socket } = client;
  const next = () => {
    while (client.flooded < maxFlooded && !socket.destroyed) {
      const bytes = pieces.next().value as Buffer;
      client.flooded += bytes.length;
      if (!socket.write(bytes)) {
        socket.once('drain', next);
        return;
      }
    }
  };
  next();
}

/** The pieces of packets without end that are one packet together; `first` is the number of the first one. */
export function* endlessPacket(first: number): Generator<Buffer, Buffer> {
  for (let sequence = first; ; sequence += 1) {
    yield Buffer.from([0xff, 0xff, 0xff, sequence & 255]);
    for (let left = 0xffffff; left > 0; left -= piece.length) {
      yield left < piece.length ? piece.subarray(0, left) : piece;
    }
  }
}

/** The same small packet again and again, with the right numbers from `first` on. */
export function* endlessPackets(payload: Buffer, first: number): Generator<Buffer, Buffer> {
  const header = Buffer.alloc(4);
  header.writeUIntLE(payload.length, 0, 3);
  const packet = Buffer.concat([header, payload]);
  const count = Math.ceil(piece.length / packet.length);
  for (let sequence = first; ; sequence += count) {
    const packets = Buffer.concat(Array.from({ length: count }, () => packet));
    for (let n = 0; n < count; n += 1) packets[n * packet.length + 3] = (sequence + n) & 255;
    yield packets;
  }
}
