// Clients that export: one reads while the reply arrives, one writes to a file and may be killed.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createReadStream, existsSync, statSync } from 'node:fs';
import { setImmediate as othersTurn } from 'node:timers/promises';
import { createGunzip } from 'node:zlib';
import { codings, contentOf, csv, ndjson, open } from '../../test/support/v1-streams.ts';
import { createExportReader, type ExportEnd, type ExportReader } from './export-reader.ts';
import { expectedExport, exportSql } from './export-table.ts';

/** Both formats that stream, as they are and compressed. */
export const ways = [ndjson, csv].flatMap((type) => codings.map((coding) => ({ type, coding })));
export type Way = (typeof ways)[number];

/** An export of this many rows. */
export type Wish = {
  readonly port: number;
  readonly way: Way;
  readonly rows: number;
  readonly requestId: string;
};

/** How an export ended: with its own sign of the end, or before it began. */
export type Ending = {
  readonly rows: number;
  readonly bytes: number;
  readonly end: ExportEnd | { readonly kind: 'refused'; readonly status: number };
};

/** Longer than an export may take on a busy machine. */
const timeoutMs = 280_000;

/**
 * Reads an export while it arrives. Rejects if anything before its end is wrong.
 * @param onBytes gets the length of each piece
 */
export async function readExport(wish: Wish, onBytes = (_more: number) => {}): Promise<Ending> {
  const { port, way, rows, requestId } = wish;
  const reader = createExportReader(way.type, expectedExport);
  let bytes = 0;
  const asked = await open({
    to: { port },
    sql: exportSql(rows),
    timeoutMs,
    requestId,
    ...way,
  }).catch(onlyCut);
  if (asked === null) return { rows: 0, bytes, end: { kind: 'cut' } };
  const { statusCode: status = 0 } = asked;
  const isCut = await takeAll(contentOf(asked), (piece) => {
    bytes += piece.length;
    if (status === 200) reader.take(piece);
    onBytes(piece.length);
  });
  if (status !== 200) return { rows: 0, bytes, end: { kind: 'refused', status } };
  return { rows: reader.rows(), bytes, end: reader.end(isCut) };
}

/** Errors of the system and of zlib have a code: the connection or the file ended too early. A reader's errors have none. */
function onlyCut(error: NodeJS.ErrnoException): null {
  if (error.code === undefined) throw error;
  return null;
}

/**
 * Resolves to whether the reply was cut. After each piece the other exports get their turn. Otherwise a socket with two megabytes ready
 * would run before one with 16 KiB of compressed data, which the gateway then resets as stalled.
 */
async function takeAll(
  content: AsyncIterable<Buffer>,
  take: (piece: Buffer) => void,
): Promise<boolean> {
  try {
    for await (const piece of content) {
      take(piece);
      await othersTurn();
    }
    return false;
  } catch (error) {
    onlyCut(error as Error);
    return true;
  }
}

/** A client that writes the reply to a file. */
export type SavingClient = {
  /** The length of the file. */
  readonly bytes: () => number;
  readonly isOver: () => boolean;
  /** Sends SIGKILL unless it has ended. Resolves to what the file contains, when the process is gone. */
  readonly kill: () => Promise<Ending>;
};

/** Starts curl. The caller must kill it. @param path of the file */
export function startSaving({ port, way, rows, requestId }: Wish, path: string): SavingClient {
  const body = JSON.stringify({ sql: exportSql(rows), timeout_ms: timeoutMs });
  const headers = {
    'Content-Type': 'application/json',
    Accept: way.type,
    'Accept-Encoding': way.coding,
    'X-Request-ID': requestId,
  };
  const client = spawn(
    'curl',
    [
      ...['--silent', '--fail', '--no-buffer', '--output', path, '--data-binary', body],
      ...Object.entries(headers).flatMap(([name, value]) => ['--header', `${name}: ${value}`]),
      `http://127.0.0.1:${port}/v1/query`,
    ],
    { stdio: 'ignore' },
  );
  const closed = once(client, 'close');
  const isOver = () => client.exitCode !== null || client.signalCode !== null;
  return {
    bytes: () => (existsSync(path) ? statSync(path).size : 0),
    isOver,
    kill: async () => {
      if (!isOver()) client.kill('SIGKILL');
      await closed;
      return readSaved(client, way, path);
    },
  };
}

/** Reads a file. Nothing in a CSV shows that it is complete. Only its client's exit status does. */
async function readSaved(client: ChildProcess, way: Way, path: string): Promise<Ending> {
  if (!existsSync(path)) return { rows: 0, bytes: 0, end: { kind: 'cut' } };
  const reader: ExportReader = createExportReader(way.type, expectedExport);
  const file = createReadStream(path);
  const content = way.coding === 'gzip' ? file.pipe(createGunzip()) : file;
  let bytes = 0;
  const isShort = await takeAll(content, (piece) => {
    bytes += piece.length;
    reader.take(piece);
  });
  const end = reader.end(isShort || client.exitCode !== 0);
  return { rows: reader.rows(), bytes, end };
}
