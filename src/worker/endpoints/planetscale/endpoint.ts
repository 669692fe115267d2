// The PlanetScale protocol: Execute runs one statement of a driver's, CreateSession gives it a session.
import { type Analysis, analyseInPieces } from '../../../shared/sql/analyse.ts';
import { isWellFormed } from '../../../shared/sql/literal.ts';
import {
  decodeTransactionStatement,
  type TransactionStatement,
} from '../../../shared/sql/transactions.ts';
import type { OpenTransactions } from '../../execution/transactions/open-transactions.ts';
import { type Refused, refuse } from '../../failure/failure.ts';
import type { Decision, SqlEndpoint } from '../endpoint.ts';
import { type ParsedObject, parseBody } from '../json-text.ts';
import { type AllSections, noSection, Sections } from '../sections.ts';
import { DriverReplies } from './replies.ts';
import {
  characteristicsOf,
  type DriverSession,
  type DriverSessions,
  freshSession,
  nothingAsked,
  withCharacteristics,
} from './session.ts';
import { type DriverCall, DriverStatements } from './transactions.ts';

/** The two endpoints. */
export type DriverEndpoints = {
  readonly execute: SqlEndpoint;
  readonly createSession: SqlEndpoint;
};

const noQuery = refuse('NO_SQL', 'query is missing, or empty.');
const noText = refuse('BAD_KEY', 'query must be a string of Unicode text.');
const noSession = refuse(
  'BAD_KEY',
  'session is not one of this gateway: send the latest one unchanged.',
);
const nowhere: Refused = { ok: false, failure: noSection };
const alreadyOpen = refuse(
  'NOT_IN_TRANSACTION',
  'The session is in a transaction already: end it by COMMIT or ROLLBACK, or use SAVEPOINT.',
);

/** Creates the endpoints of one worker. Each client is given the database of the first section that it may use. */
export function createDriverEndpoints(
  all: AllSections,
  sessions: DriverSessions,
  transactions: OpenTransactions,
): DriverEndpoints {
  const sections = new Sections(all, (served) => {
    const replies = new DriverReplies(sessions, served.config);
    return { served, replies, statements: new DriverStatements(served, transactions, replies) };
  });
  return {
    execute: {
      kind: 'sql',
      check: () => null,
      *decide(call) {
        const decoded = decodeExecution(yield* parseBody(call.body, call.isLong), sessions);
        if (!decoded.ok) return decoded;
        const { first } = sections.for(call.record.caller.client);
        if (first === null) return nowhere;
        const { served, statements, replies } = first;
        const { sql, session } = decoded;
        const { builtIns } = served.context.catalogue();
        // The sessions of drivers never have NO_BACKSLASH_ESCAPES.
        const analysis = yield* analyseInPieces(sql, builtIns, 'escaping');
        return decide({ ...call, session }, analysis, statements, replies);
      },
    },
    createSession: {
      kind: 'sql',
      check: () => null,
      /** Whatever the body says. */
      *decide({ record }) {
        yield;
        const { first } = sections.for(record.caller.client);
        return first === null ? nowhere : first.replies.opened(freshSession);
      },
    },
  };
}

type Execution = { readonly ok: true; readonly sql: string; readonly session: DriverSession };

/** Unknown fields are passed over: drivers may be newer than the gateway. */
function decodeExecution(parsed: ParsedObject, sessions: DriverSessions): Execution | Refused {
  if (!parsed.ok) return refuse(parsed.code, `${parsed.message}.`);
  const { query: sql, session: value } = parsed.object;
  if (sql === undefined || sql === null || sql === '') return noQuery;
  if (typeof sql !== 'string' || !isWellFormed(sql)) return noText;
  if (sql.trim() === '') return noQuery;
  const session = sessions.decode(value);
  return session === null ? noSession : { ok: true, sql, session };
}

function decide(
  call: DriverCall,
  analysis: Analysis,
  statements: DriverStatements,
  replies: DriverReplies,
): Decision {
  const statement = decodeTransactionStatement(analysis);
  if (statement.kind === 'unsupported') return refuse('NOT_IN_TRANSACTION', `${statement.reason}.`);
  const isOutside = call.session.transaction === null;
  if (statement.kind === 'ordinary') {
    return isOutside ? statements.runAlone(call, analysis) : statements.runWithin(call, analysis);
  }
  if (isOutside) return decideOutside(call, statement, statements, replies);
  switch (statement.kind) {
    case 'begin':
      return alreadyOpen;
    case 'commit':
      return statements.commit(call);
    case 'rollback':
      return statements.rollback(call);
    case 'set':
      return statements.runWithin(call, analysis);
    default:
      return statement satisfies never;
  }
}

type OwnStatement = Exclude<TransactionStatement, { kind: 'unsupported' | 'ordinary' }>;

function decideOutside(
  call: DriverCall,
  statement: OwnStatement,
  statements: DriverStatements,
  replies: DriverReplies,
): Decision {
  const { session } = call;
  switch (statement.kind) {
    case 'begin': {
      const { isolation, isReadOnly } = characteristicsOf(session);
      const { withConsistentSnapshot } = statement;
      return statements.begin(
        { ...call, session: { ...session, next: nothingAsked } },
        { isolation, isReadOnly: statement.isReadOnly ?? isReadOnly, withConsistentSnapshot },
      );
    }
    case 'commit':
    case 'rollback':
      return replies.done(session);
    case 'set':
      return replies.done(withCharacteristics(session, statement.scope, statement.characteristics));
    default:
      return statement satisfies never;
  }
}
