// The worker's reply to bytes from MySQL: a connection without a network, a query, a reply without HTTP.
import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { type ArenaReader, Connection } from '../../../src/shared/mysql/connection.ts';
import type { ServerError } from '../../../src/shared/mysql/packets.ts';
import { discardResults, QueryCommand } from '../../../src/shared/mysql/query.ts';
import type { FormatChoice } from '../../../src/worker/encode/format.ts';
import {
  chooseDbFormat,
  createDbHeads,
  type DbReplyOptions,
} from '../../../src/worker/encode/formats/db.ts';
import {
  createCsvHeads,
  createNdjsonHeads,
  createV1Heads,
} from '../../../src/worker/encode/formats/v1-heads.ts';
import { chooseV1Json, type V1ReplyOptions } from '../../../src/worker/encode/formats/v1-json.ts';
import { chooseCsv, chooseNdjson } from '../../../src/worker/encode/formats/v1-stream.ts';
import { createReplyHead, jsonType } from '../../../src/worker/encode/head.ts';
import { RowModule } from '../../../src/worker/encode/row-module.ts';
import { BufferPool, ReplyWriter, type Transport } from '../../../src/worker/encode/writer.ts';
import { serverFailure } from '../../../src/worker/failure/server-failure.ts';
import { okPacket, toBytes } from '../../support/database/mysql-answer.ts';

/** A transport that keeps what it is given, copied before the writer may write on. */
export type Collected = Transport & {
  readonly body: () => Buffer;
  readonly how: () => 'nothing' | 'whole' | 'begun' | 'finished';
  readonly parts: readonly number[];
};

/** Creates one. */
export function collect(): Collected {
  const pieces: Buffer[] = [];
  const parts: number[] = [];
  let how: 'nothing' | 'whole' | 'begun' | 'finished' = 'nothing';
  return {
    body: () => Buffer.concat(pieces),
    how: () => how,
    parts,
    sendWhole: (_head, bytes, length, sent) => {
      pieces.push(Buffer.from(bytes.subarray(0, length)));
      how = 'whole';
      sent();
    },
    begin: () => {
      how = 'begun';
    },
    sendPart: (bytes, sent) => {
      pieces.push(Buffer.from(bytes));
      parts.push(bytes.length);
      sent();
    },
    finish: () => {
      how = 'finished';
    },
  };
}

/** Shared, as a worker's replies share one: a buffer for each of some ten thousand replies would keep the garbage collector busy. */
const buffers = new BufferPool();

/** Creates a writer that sends to it. */
export function createWriter(transport: Collected, holdBytes = 65536, pool = buffers): ReplyWriter {
  return new ReplyWriter(pool, holdBytes, transport, createReplyHead(200, jsonType));
}

/** The result of an answer. */
export type Transcript = {
  /** The document, if it was ended as one. */
  readonly document: Buffer | null;
  readonly how: ReturnType<Collected['how']>;
  /** Why the connection was given up, if it was. */
  readonly lost: Error | null;
};

const headroomBytes = 16 * 1024;
const arenaBytes = headroomBytes + 128 * 1024;
/** Creates what writes many rows at once. */
export function createRowModule(): RowModule {
  const code = readFileSync(new URL('../../../src/worker/encode/rows.wasm', import.meta.url));
  return new RowModule(code, arenaBytes);
}
const rowModule = createRowModule();

/** The code that writes rows, whether they are read into an arena, and whether the connection has seen the columns before. */
export type Way = {
  readonly rowModule: RowModule | null;
  readonly arena: Buffer | null;
  readonly knowsColumns?: boolean;
};

const oneByOne: Way = { rowModule: null, arena: null };

/** All ways from bytes to a document: they must not differ in what they say. */
export const ways: Readonly<Record<string, Way>> = {
  'one by one': oneByOne,
  'one by one, in an arena': { rowModule: null, arena: Buffer.alloc(arenaBytes) },
  'many at once': { rowModule, arena: null },
  'many at once, in the arena': { rowModule, arena: rowModule.arena },
  'one by one, columns known': { rowModule: null, arena: null, knowsColumns: true },
  'many at once, in the arena, columns known': {
    rowModule,
    arena: rowModule.arena,
    knowsColumns: true,
  },
};

/** The formats of /v1: JSON with rows as arrays and as objects, lines of both, CSV. */
export const v1Kinds = ['json', 'objects', 'lines', 'lines of objects', 'csv'] as const;
export type V1Kind = (typeof v1Kinds)[number];

/** The options of reading an answer. */
export type Reading = Partial<Pick<DbReplyOptions, 'maxRows' | 'maxResultBytes'>> & {
  readonly exactAsStrings?: boolean;
  /** The format; /db's by default. */
  readonly as?: V1Kind;
  readonly way?: Way;
  readonly holdBytes?: number;
  readonly extended?: boolean;
};

/** Imitates a socket: chunks as large as the arena, written over its earlier content. */
function receiveInto(arena: Buffer, arenaReader: ArenaReader, chunk: Buffer): void {
  const room = arena.length - headroomBytes;
  for (let at = 0; at < chunk.length; at += room) {
    const length = chunk.copy(arena, headroomBytes, at, at + room);
    arenaReader.receive(arena, headroomBytes, headroomBytes + length);
    arena.fill(0xfb, headroomBytes, headroomBytes + length);
  }
}

/** A connection without a network. */
function openLink({ arena }: Way, extended: boolean) {
  const arenaReader: ArenaReader | null = arena === null ? null : { receive: () => {} };
  const socket = new Duplex({ read: () => {}, write: (_bytes, _encoding, done) => done() });
  const connection = new Connection({
    socket: socket as Socket,
    threadId: 1,
    serverVersion: '10.11',
    extendedMetadata: extended,
    hasQueryAttributes: false,
    isRemembered: false,
    arenaReader,
    end: () => {},
  });
  const receive = (chunk: Buffer): void => {
    if (arena === null) socket.emit('data', chunk);
    else receiveInto(arena, arenaReader as ArenaReader, chunk);
  };
  return { connection, receive };
}

/** The same link, if it has had this answer already; a new one if the answer is not exactly one. */
function openPrimedLink(way: Way, extended: boolean, answer: Buffer): ReturnType<typeof openLink> {
  const link = openLink(way, extended);
  let answers = 0;
  const owner = {
    answered: () => {
      answers += 1;
    },
    lost: () => {},
  };
  for (const [index, bytes] of [answer, toBytes([okPacket()])].entries()) {
    const { connection } = link;
    connection.send(new QueryCommand('select', connection, discardResults, owner));
    link.receive(bytes);
    if (answers !== index + 1 || connection.isLost) return openLink(way, extended);
  }
  return link;
}

function chooseV1(
  kind: V1Kind,
  limits: Pick<V1ReplyOptions, 'rowModule' | 'maxRows' | 'maxResultBytes'>,
  exact: boolean,
): FormatChoice {
  const layout = {
    rows: kind.endsWith('objects') ? 'object' : 'array',
    numbers: exact ? 'exact' : 'raw',
    json: 'string',
  } as const;
  const about = {
    section: '"s"',
    requestId: 'r',
    isReadOnly: false,
    isRead: true,
    isDryRun: false,
    isKept: false,
  };
  const options = { ...limits, ...about, heads: createV1Heads(layout) };
  if (kind === 'csv') return chooseCsv({ ...options, streamHeads: createCsvHeads() });
  return kind.startsWith('lines')
    ? chooseNdjson({ ...options, streamHeads: createNdjsonHeads(layout) })
    : chooseV1Json(options);
}

/** Hands the chunks to a connection that waits for a query's answer. Whatever is thrown is thrown on. */
export function transcribe(chunks: Iterable<Buffer>, reading: Reading = {}): Transcript {
  const { way = oneByOne, holdBytes = 65536, extended = false, exactAsStrings = false } = reading;
  const { maxRows = 0, maxResultBytes = 0 } = reading;
  const transport = collect();
  const limits = { rowModule: way.rowModule, maxRows, maxResultBytes };
  const format =
    reading.as === undefined
      ? chooseDbFormat(
          {
            ...limits,
            serverKey: Buffer.from('"SERVER":"s"'),
            heads: createDbHeads(exactAsStrings),
          },
          null,
        )
      : chooseV1(reading.as, limits, exactAsStrings);
  const reply = format.create(createWriter(transport, holdBytes), {
    replyTooLarge: () => {},
    replyTooWide: () => {},
    replyRefused: () => {},
    replyIsComplete: () => {},
  });
  let lost: Error | null = null;
  const whole = [...chunks];
  const { connection, receive } = way.knowsColumns
    ? openPrimedLink(way, extended, Buffer.concat(whole))
    : openLink(way, extended);
  const owner = {
    answered: (_flagsClean: boolean, error: ServerError | null) => {
      const statement = command.results.length;
      const failure =
        error === null
          ? null
          : serverFailure(
              error,
              { isReadOnly: false, isRead: false },
              statement > 0 ? 'partial' : 'failed',
              statement > 0 ? { statement } : null,
            );
      reply.finish({ kind: 'answered', failure, facts: null });
    },
    lost: (reason: Error) => {
      lost = reason;
    },
  };
  const command = new QueryCommand('select', connection, reply, owner);
  connection.send(command);
  for (const chunk of whole) receive(chunk);
  const how = transport.how();
  const ended = how === 'whole' || how === 'finished';
  return { document: ended ? transport.body() : null, how, lost };
}
