// /v1/tables: the tables of a section's database, and one of them with its columns, keys and indexes.
import { jsonType } from '../../encode/head.ts';
import { refusal, refuse } from '../../failure/failure.ts';
import { sendFailure, sendText } from '../../http/failure-reply.ts';
import { announcesBody } from '../../http/request.ts';
import type { Call, SqlEndpoint } from '../endpoint.ts';
import { findFault, isText } from '../fields.ts';
import { type HandedRun, runHandedOver } from '../handed-over.ts';
import { type AllSections, Sections, whyNotSection } from '../sections.ts';
import { TableQuestions } from './decide.ts';

/** The path of the list. The name of a table follows a slash. */
export const tablesPath = '/v1/tables';

/** Names of many tables, or columns of a wide one. */
const maxBytes = 1024 * 1024;
const success = 200;
const bodyOfGet = refusal('BAD_REQUEST', 'A GET has no body here.');
const notText = refuse('BAD_ENCODING', 'The name of the table is not UTF-8.');

const ofList = new Map([
  ['section', isText],
  ['filter', isText],
]);
const ofTable = new Map([['section', isText]]);

/** Creates the endpoint of one worker. */
export function createTablesEndpoint(all: AllSections): SqlEndpoint {
  const sections = new Sections(all, (served) => served);
  const questions = new TableQuestions();
  return {
    kind: 'sql',
    check: (request) => (announcesBody(request) ? bodyOfGet : null),
    sourceOf: () => 'url',
    *decide(call) {
      const { caller, requestId } = call.record;
      const { path, query } = call.head;
      const table = path === tablesPath ? null : decode(path.slice(tablesPath.length + 1));
      if (table === undefined) return notText;
      const asked = new URLSearchParams(query ?? '');
      const fault = findFault(Object.fromEntries(asked), table === null ? ofList : ofTable);
      if (fault !== null) return refuse(fault.code, fault.message);
      const usable = sections.for(caller.client);
      const name = asked.get('section');
      const failure = whyNotSection('section', name ?? undefined, usable.names);
      if (failure !== null) return { ok: false, failure };
      const section = usable.of(name);
      const decided = yield* questions.decide({
        section,
        caller,
        requestId,
        table,
        filter: asked.get('filter'),
        sections: usable.names.usable,
        maxBytes,
        timeoutMs: section.config.statementTimeoutMs,
        missing: 'NOT_FOUND',
      });
      if (!decided.ok || decided.kind === 'reply') return decided;
      return { ok: true, kind: 'own reply', begin: () => answer(decided, call) };
    },
  };
}

/** Undefined: it is no text. */
function decode(part: string): string | undefined {
  try {
    return decodeURIComponent(part);
  } catch {
    return undefined;
  }
}

async function answer(decided: HandedRun, call: Call): Promise<void> {
  const { response, record } = call;
  const { requestId } = record;
  const ended = await runHandedOver(decided, call);
  if (response.destroyed) return;
  if (ended.kind === 'failed') {
    sendFailure(response, ended.failure, requestId);
    return;
  }
  const { status, body } = ended;
  response.addHeaders(['X-Request-ID', requestId]);
  if (status !== success) {
    sendText(response, body, 'application/problem+json', status);
    return;
  }
  const rendered = decided.render?.(body) ?? { ok: true, json: body };
  if (rendered.ok) sendText(response, rendered.json, jsonType);
  else sendFailure(response, rendered.failure, requestId);
}
