// Runs a call of a tool: decides on it, runs its statements in an exchange as those of any request, and makes its result.
import { setImmediate as afterOthers } from 'node:timers/promises';
import { allAtOnce, type Pieces } from '../../../shared/pieces.ts';
import { toolErrorJson } from '../../encode/formats/tool-json.ts';
import { type Failure, internalFailure, refusal } from '../../failure/failure.ts';
import { runHandedOver } from '../handed-over.ts';
import { showHidden, type Tool, type ToolCall, type ToolResult } from './tools.ts';

const clientGone = refusal('CLIENT_GONE', 'The client went away.');
const success = 200;

/** Runs a call. Rejects only if the decision throws, which is a bug. @param showsServerText whether the client may see MySQL's own words */
export async function runTool(
  tool: Tool,
  toolCall: ToolCall,
  showsServerText: boolean,
): Promise<ToolResult> {
  const { call } = toolCall;
  const fail = (failure: Failure): ToolResult => {
    call.response.failureCode = failure.code;
    const json = showHidden(toolErrorJson(failure, showsServerText));
    return { ok: false, json, failure };
  };
  const deciding = tool.decide(toolCall);
  const decided = call.isLong ? await inTurns(deciding) : allAtOnce(deciding);
  if (!decided.ok) return fail(decided.failure);
  if (decided.kind === 'reply') return { ok: true, json: showHidden(decided.json) };
  // Nothing would notice a client that has left before the statements begin.
  if (call.response.destroyed) return fail(clientGone);
  const ended = await runHandedOver(decided, call);
  if (ended.kind === 'failed') return fail(ended.failure);
  const { status, body } = ended;
  if (status !== success) return { ok: false, json: showHidden(body), failure: null };
  const rendered = decided.render?.(body) ?? { ok: true, json: body };
  return rendered.ok ? { ok: true, json: showHidden(rendered.json) } : fail(rendered.failure);
}

/** Other work of the event loop runs between the pieces. */
async function inTurns<Result>(work: Pieces<Result>): Promise<Result> {
  for (;;) {
    const { done, value } = work.next();
    if (done === true) return value;
    await afterOthers();
  }
}

/** The result of a call that an exception has ended. */
export function faultedResult(): ToolResult {
  const failure = internalFailure('unknown');
  return { ok: false, json: toolErrorJson(failure, false), failure };
}
