// A connection to a server that is made up: each statement is answered by a function, a turn of the event loop later.

import { ColumnCache } from '../../../src/shared/mysql/column-cache.ts';
import { commandCodes } from '../../../src/shared/mysql/command-packets.ts';
import type { Command, Connection } from '../../../src/shared/mysql/connection.ts';
import type { ServerIdentity } from '../../../src/shared/mysql/identity.ts';
import type { ResultSink } from '../../../src/shared/mysql/query.ts';
import { QueryCommand, type QueryEvents } from '../../../src/shared/mysql/query.ts';
import type { Log } from '../../../src/shared/process/log.ts';
import type { Session } from '../../../src/worker/servers/pool/session.ts';
import { errorPacket, okPacket, resultSet } from '../../support/database/mysql-answer.ts';

/** Rows, an error, OK with the server's flags and its number of warnings, plain OK, no answer, or the end of the connection. */
export type ScriptedAnswer =
  | { readonly rows: readonly (readonly (string | null)[])[] }
  | { readonly errno: number }
  | { readonly status: number; readonly warnings: number }
  | 'ok'
  | 'silence'
  | 'lost';

/** A connection that records what it was sent and what was done to it. */
export type ScriptedConnection = Connection & {
  /** Statements; other commands by their names, with their arguments. */
  readonly sent: readonly string[];
  /** Ends it from the server's side. */
  readonly lose: () => void;
};

const headerBytes = 4;

/** Creates one. @param answer what the server says to a statement, or to the name of another command */
export function createScriptedConnection(
  answer: (statement: string) => ScriptedAnswer = () => 'ok',
  threadId = 7,
): ScriptedConnection {
  const sent: string[] = [];
  const pending: Command[] = [];
  let isLost = false;
  let onLost: (reason: Error, wasAsked: boolean) => void = () => {};
  const destroy = (reason: Error) => {
    if (isLost) return;
    isLost = true;
    const lost = pending.splice(0);
    onLost(reason, lost.length > 0);
    for (const command of lost) command.lost(reason);
  };
  const reply = (command: Command, statement: string) => {
    const said = answer(statement);
    if (said === 'silence' || isLost) return;
    if (said === 'lost') {
      destroy(new Error('the server closed the connection'));
      return;
    }
    pending.splice(pending.indexOf(command), 1);
    try {
      for (const payload of payloadsOf(said)) command.handlePacket(payload, 0, payload.length);
    } catch (error) {
      // As on a real connection, an answer that a command does not accept ends both.
      destroy(error as Error);
      command.lost(error as Error);
    }
  };
  const send = (command: Command) => {
    if (isLost) {
      command.lost(new Error('the connection is lost'));
      return;
    }
    const statement = readCommand(command.packet);
    sent.push(statement);
    pending.push(command);
    setImmediate(() => reply(command, statement));
  };
  const connection = {
    threadId,
    sent,
    flavour: 'mariadb',
    serverVersion: '10.11.0-MariaDB',
    hasQueryAttributes: false,
    columns: new ColumnCache(false, 'mariadb'),
    get isLost() {
      return isLost;
    },
    send,
    sendTogether: (commands: readonly Command[]) => commands.forEach(send),
    watch: (reported: typeof onLost) => {
      onLost = reported;
    },
    pause: () => {},
    resume: () => {},
    destroy,
    lose: () => destroy(new Error('the server closed the connection')),
  };
  return connection as unknown as ScriptedConnection;
}

/** A session on it. */
export function createScriptedSession(
  connection: ScriptedConnection,
  more: Partial<Pick<Session, 'identity' | 'isFresh' | 'aliveAt'>> = {},
): Session {
  const identity: ServerIdentity = { name: 'db:3306/1', startedAt: 1_000 };
  const session = {
    index: -1,
    connection,
    identity,
    commandLimitBytes: 1 << 20,
    maxTextBytes: 1 << 20,
    isFresh: true,
    aliveAt: performance.now(),
    onLost: null,
    holder: null,
    heldSince: 0,
    createQuery: (sql: string, _trace: string | null, sink: ResultSink, events: QueryEvents) =>
      new QueryCommand(sql, connection, sink, events),
    ...more,
  };
  return session as unknown as Session;
}

const ignore = () => {};
/** A log without a reader. */
export const silentLog: Log = {
  error: ignore,
  warn: ignore,
  info: ignore,
  debug: null,
  reopen: ignore,
};

function payloadsOf(said: Exclude<ScriptedAnswer, 'silence' | 'lost'>): readonly Buffer[] {
  if (said === 'ok') return [okPacket()];
  if ('errno' in said) return [errorPacket(said.errno, 'refused')];
  if ('status' in said) {
    const ok = okPacket(0, 0, said.status);
    ok.writeUInt16LE(said.warnings, ok.length - 2);
    return [ok];
  }
  const columns = (said.rows[0] ?? ['']).map((_cell, at) => ({ name: `c${at}` }));
  return resultSet(columns, said.rows);
}

function readCommand(packet: Buffer): string {
  const code = packet[headerBytes];
  if (code === commandCodes.query) return packet.toString('utf8', headerBytes + 1);
  const [name = 'unknown'] = Object.entries(commandCodes).find(([, known]) => known === code) ?? [];
  return `${name} ${packet.toString('utf8', headerBytes + 1)}`.trim();
}
