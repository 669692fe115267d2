// The PlanetScale protocol: Execute runs one statement of a driver's, CreateSession gives it a session.
// Must not know how statements are run, nor how transactions are held.

import { isUtf8 } from 'node:buffer';
import type { Analysis } from '../../../shared/sql/analyse.ts';
import { isWellFormed } from '../../../shared/sql/literal.ts';
import {
  decodeTransactionStatement,
  type TransactionStatement,
} from '../../../shared/sql/transactions.ts';
import { createDriverHeads } from '../../encode/formats/driver.ts';
import { type Failure, refusal } from '../../failure/failure.ts';
import { sendFailure } from '../../http/reply.ts';
import type { IncomingRequest } from '../../http/request.ts';
import type { RequestRecord } from '../../observe/observation.ts';
import { parseBasic } from '../../request/basic-credentials.ts';
import { Exchange } from '../../request/exchange.ts';
import type { Handler } from '../../request/router.ts';
import { readJsonBody } from '../json-body.ts';
import { type ParsedObject, parseObject } from '../json-text.ts';
import type { Served } from '../served-sections.ts';
import { DriverReplies, type ReplySettings } from './replies.ts';
import {
  characteristicsOf,
  type DriverSession,
  type DriverSessions,
  freshSession,
  nothingAsked,
  withCharacteristics,
} from './session.ts';
import { analyseThen, decideDriver } from './statement.ts';
import type { DriverCall, DriverTransactions } from './transactions.ts';

/** The two handlers. */
export type DriverHandlers = { readonly execute: Handler; readonly createSession: Handler };

/** What is asked for. */
type Execution = { readonly sql: string; readonly session: DriverSession };

const noQuery = refusal('NO_SQL', 'query is missing, or empty.');
const noText = refusal('BAD_KEY', 'query must be a string of Unicode text.');
const noSession = refusal('BAD_KEY', 'session is none that was given here: send it as it came.');
const notUtf8 = refusal('BAD_ENCODING', 'The body is not UTF-8.');
const alreadyOpen = refusal(
  'NOT_IN_TRANSACTION',
  'The session is in a transaction already: end it by COMMIT or ROLLBACK, or use SAVEPOINT.',
);

/** Creates the endpoints of one worker. @param served the section whose database they are given */
export function createDriverEndpoints(
  served: Served,
  sessions: DriverSessions,
  transactions: DriverTransactions,
): DriverHandlers {
  const { config, context } = served;
  const { observe, longWork } = context;
  const bodies = { maxRequestBytes: config.maxRequestBytes, observe, longWork };
  const settings: ReplySettings = {
    sessions,
    heads: createDriverHeads(),
    limits: { maxRows: config.maxRows, maxResultBytes: config.maxResultBytes },
  };
  return {
    execute: (request, response, _head, record) => {
      noteUser(request, record);
      readJsonBody(request, response, record, bodies, (body, parsed) => {
        const decoded = decodeExecution(body, sessions, parsed);
        if ('code' in decoded) {
          sendFailure(response, decoded, record.requestId);
          return;
        }
        const replies = new DriverReplies(settings, response, record);
        const { sql, session } = decoded;
        answer({ served, request, response, record, body, session, replies }, sql, transactions);
      });
    },
    createSession: (request, response, _head, record) => {
      noteUser(request, record);
      readJsonBody(request, response, record, bodies, () => {
        new DriverReplies(settings, response, record).opened(freshSession);
      });
    },
  };
}

/** Who it is says nothing of what it may do. */
function noteUser({ headers }: IncomingRequest, record: RequestRecord): void {
  record.user = parseBasic(headers.authorization)?.user ?? null;
}

/** What is known neither to us nor, perhaps, to anybody is passed over: drivers may be newer than we are. */
function decodeExecution(
  body: Buffer,
  sessions: DriverSessions,
  known: ParsedObject | null,
): Execution | Failure {
  if (known === null && !isUtf8(body)) return notUtf8;
  const parsed = known ?? parseObject(body.toString());
  if (!parsed.ok) return refusal(parsed.code, `${parsed.message}.`);
  const { query: sql, session: value } = parsed.object;
  if (sql === undefined || sql === null || sql === '') return noQuery;
  if (typeof sql !== 'string' || !isWellFormed(sql)) return noText;
  if (sql.trim() === '') return noQuery;
  const session = sessions.decode(value);
  return session === null ? noSession : { sql, session };
}

function answer(call: DriverCall, sql: string, transactions: DriverTransactions): void {
  analyseThen(call, sql, (analysis) => {
    const statement = decodeTransactionStatement(analysis);
    if (statement.kind === 'unsupported') refuse(call, unsupported(statement.reason));
    else if (call.session.transaction === null)
      answerOutside(call, analysis, statement, transactions);
    else answerWithin(call, analysis, statement, transactions);
  });
}

type Supported = Exclude<TransactionStatement, { kind: 'unsupported' }>;

function answerOutside(
  call: DriverCall,
  analysis: Analysis,
  statement: Supported,
  transactions: DriverTransactions,
): void {
  const { session, replies } = call;
  switch (statement.kind) {
    case 'begin': {
      const { isolation, isReadOnly } = characteristicsOf(session);
      transactions.begin(
        { ...call, session: { ...session, next: nothingAsked } },
        {
          isolation,
          isReadOnly: statement.isReadOnly ?? isReadOnly,
          withConsistentSnapshot: statement.withConsistentSnapshot,
        },
      );
      break;
    }
    case 'commit':
    case 'rollback':
      replies.done(session);
      break;
    case 'set':
      replies.done(withCharacteristics(session, statement.scope, statement.characteristics));
      break;
    case 'ordinary':
      runAlone(call, analysis);
      break;
    default:
      statement satisfies never;
  }
}

function answerWithin(
  call: DriverCall,
  analysis: Analysis,
  { kind }: Supported,
  transactions: DriverTransactions,
): void {
  if (kind === 'begin') refuse(call, alreadyOpen);
  else if (kind === 'commit') transactions.commit(call);
  else if (kind === 'rollback') transactions.rollback(call);
  else transactions.run(call, analysis);
}

function unsupported(reason: string): Failure {
  return refusal('NOT_IN_TRANSACTION', `${reason}.`);
}

function refuse({ response, record }: DriverCall, failure: Failure): void {
  sendFailure(response, failure, record.requestId);
}

/** A statement that is its own transaction. */
function runAlone(call: DriverCall, analysis: Analysis): void {
  const { served, response, record, session, replies } = call;
  const { config, context } = served;
  const decided = decideDriver(served, analysis);
  if (!decided.ok) {
    sendFailure(response, decided.failure, record.requestId);
    return;
  }
  const { statement } = decided;
  const wish = {
    work: statement,
    timeoutMs: config.statementTimeoutMs,
    record,
    format: replies.format(analysis, () => session),
    after: null,
  };
  new Exchange(context, wish, response).start();
}
