// /v1/stats, /v1/requests and /v1/statements: what goes on in the whole instance, and the end of what should not.
// Must not know how the supervisor finds it out.
import type { Caller } from '../../../shared/process/calls.ts';
import type { SupervisorCalls } from '../../../shared/process/messages.ts';
import { jsonType } from '../../encode/head.ts';
import { refusal } from '../../failure/failure.ts';
import { sendFailure, sendText } from '../../http/reply.ts';
import type { Handler } from '../endpoint.ts';
import { noAnswer, watching } from '../watching.ts';

/** Where requests are listed; one of them stands behind it and a slash. */
export const requestsPath = '/v1/requests';

const noRequest = refusal('NOT_FOUND', 'There is no such request, or it is over.');

/** What the supervisor tells as it is asked, without more words. */
export type ToldName = 'stats' | 'requests' | 'statements';

/** Answers with what the supervisor says, as JSON. */
export function createTold(supervisor: Caller<SupervisorCalls>, name: ToldName): Handler {
  return watching((_request, response, requestId) => {
    void supervisor.ask(name, null).then((told) => {
      if (told === null) sendFailure(response, noAnswer, requestId);
      else sendText(response, JSON.stringify(told), jsonType);
    });
  });
}

/** Ends the request whose number stands at the end of the path, whichever worker has it. */
export function createKill(supervisor: Caller<SupervisorCalls>): Handler {
  return (request, response, head, record) => {
    const id = head.path.slice(requestsPath.length + 1);
    watching((_request, reply, requestId) => {
      void supervisor.ask('kill', id).then((answer) => {
        if (answer === null) sendFailure(reply, noAnswer, requestId);
        else if (!answer.isFound) sendFailure(reply, noRequest, requestId);
        else sendText(reply, JSON.stringify({ id, killed: true }), jsonType);
      });
    })(request, response, head, record);
  };
}
