// Judges the end of a request, given the faults during it. Pure.
import type { Document } from '../../test/support/db-results.ts';
import { type Reported, reportedBy } from '../../test/support/histories/history.ts';
import type { Ending } from './client.ts';
import type { Question } from './questions.ts';

/** Faults that overlapped with the request: a worker or the database was down for a while. */
export type Excuses = { readonly worker: boolean; readonly database: boolean };

/** The promises about single requests. */
export const requestPromises = {
  connect: 'no connection is refused',
  document: 'every complete reply is a JSON document',
  value: 'every answer is right and belongs to its question',
  status: 'a fault explains every status, error and cut',
} as const;

/** How the request is counted, what the client learned about a write, and the broken promise, if any. */
export type Judgement = {
  readonly outcome: string;
  readonly reported: Reported;
  readonly breach: { readonly promise: string; readonly example: string } | null;
};

/** Judges one ending. */
export function judgeEnding(question: Question, ending: Ending, excuses: Excuses): Judgement {
  switch (ending.kind) {
    case 'refused':
      return bad('refused', 'not_executed', requestPromises.connect, ending.detail);
    case 'cut': {
      // A reply that has not begun is an error with a status when the database goes: only one that streams is cut.
      const streamed = excuses.database && ending.received > 0;
      if (excuses.worker || streamed) return good('cut by a fault', 'unknown');
      return bad('cut', 'unknown', requestPromises.status, `${question.name}: ${ending.detail}`);
    }
    case 'reply':
      return judgeReply(question, ending.status, ending.body.toString(), excuses);
    default:
      throw new Error(`no such ending: ${ending satisfies never}`);
  }
}

function judgeReply(question: Question, status: number, text: string, excuses: Excuses): Judgement {
  const document = parse(text);
  const example = `${question.name}: ${status} ${text.slice(0, 200)}`;
  if (document === null) return bad('no JSON', 'unknown', requestPromises.document, example);
  const { OUTCOME, MYSQL_ERRNO } = document;
  if (status === 200 && MYSQL_ERRNO === undefined) {
    if (question.isRight(document)) return good(question.name, 'applied');
    return bad('wrong answer', 'applied', requestPromises.value, example);
  }
  const inTime = status === 504 && question.wants === 'deadline' && OUTCOME === 'failed';
  if (inTime) return good('504 as wanted', 'refused');
  // Its short deadline may pass while it waits behind others.
  const waited = status === 503 && question.wants === 'deadline' && OUTCOME === 'not_executed';
  if (waited) return good('503 as it may', 'not_executed');
  const mayFail = status === 200 || status === 502 || status === 503;
  if (!excuses.database || !mayFail) {
    return bad(`${status} ${OUTCOME}`, 'unknown', requestPromises.status, example);
  }
  const outcome =
    status === 200 ? `error ${MYSQL_ERRNO} by a fault` : `${status} ${OUTCOME} by a fault`;
  return good(outcome, question.writes === 'row' ? reported(status, text, document) : 'unknown');
}

function reported(status: number, text: string, document: Document): Reported {
  return reportedBy({ status, text, json: <Shape>() => document as Shape });
}

function parse(text: string): Document | null {
  try {
    const document: unknown = JSON.parse(text);
    return typeof document === 'object' && document !== null ? (document as Document) : null;
  } catch {
    return null;
  }
}

function good(outcome: string, reportedWhat: Reported): Judgement {
  return { outcome, reported: reportedWhat, breach: null };
}

function bad(outcome: string, reportedWhat: Reported, promise: string, example: string): Judgement {
  return { outcome, reported: reportedWhat, breach: { promise, example } };
}
