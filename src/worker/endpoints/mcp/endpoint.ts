// /mcp: takes one message of the Model Context Protocol, has the package answer it, and runs the tools that it calls.

import { createToolHeads } from '../../encode/formats/tool-json.ts';
import { typedHeaders } from '../../encode/head.ts';
import { refuse } from '../../failure/failure.ts';
import type { RequestRecord } from '../../observe/observation.ts';
import type { Call, Decision, SqlEndpoint } from '../endpoint.ts';
import type { Fields } from '../fields.ts';
import { parseBody } from '../json-text.ts';
import { type AllSections, Sections } from '../sections.ts';
import { TableQuestions } from '../tables/decide.ts';
import { createDescribeTool } from './describe-tool.ts';
import { Protocol, type ProtocolReply, protocolHeaders } from './protocol.ts';
import { createQueryTool } from './query-tool.ts';
import { faultedResult, runTool } from './run-tool.ts';
import { type NamedTools, type ToolResult, type ToolSet, ToolSets } from './tools.ts';

const batch = refuse('BAD_KEY', 'JSON-RPC batches are not accepted: send one message at a time');

/** Creates the endpoint of one worker. @param namedTools the named statements of a client */
export function createMcpEndpoint(all: AllSections, namedTools: NamedTools): SqlEndpoint {
  const sections = new Sections(all, (served) => served);
  const queryHeads = createToolHeads();
  const questions = new TableQuestions();
  const sets = new ToolSets((client) => {
    const usable = sections.for(client);
    return [createDescribeTool(usable, questions), createQueryTool(usable, queryHeads)];
  }, namedTools);
  const protocol = new Protocol();
  const { observe } = all[0].context;
  const call = async (
    set: ToolSet,
    name: string,
    asked: Call,
    args: () => [Fields, () => Fields],
  ): Promise<ToolResult> => {
    const { record } = asked;
    try {
      const tool = set.byName.get(name);
      if (tool === undefined) throw new Error('the tool is known');
      record.tool = name;
      const [given, exactArgs] = args();
      const toolCall = { call: asked, caller: record.caller, args: given, exactArgs };
      const result = await runTool(tool, toolCall, set.showsServerText);
      record.toolFailed = !result.ok;
      return result;
    } catch (cause) {
      observe({ kind: 'exception', cause, record });
      record.toolFailed = true;
      return faultedResult();
    }
  };
  return {
    kind: 'sql',
    check: () => null,
    *decide(asked) {
      const parsed = yield* parseBody(asked.body, asked.isLong);
      if (!parsed.ok) {
        return isArray(asked.body) ? batch : refuse(parsed.code, parsed.message);
      }
      const set = sets.of(asked.record.caller.client);
      const { object, exact } = parsed;
      const message = {
        method: 'POST',
        headers: protocolHeaders(asked.request.rawHeaders),
        body: object,
        definitions: set.definitions,
        call: (name: string) =>
          set.byName.has(name)
            ? call(set, name, asked, () => [argumentsOf(object), () => argumentsOf(exact())])
            : null,
      };
      return {
        ok: true,
        kind: 'own reply',
        begin: async () => send(await protocol.answer(message), asked, asked.record),
      } satisfies Decision;
    },
  };
}

const openBracket = 0x5b;
const spaces: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d]);

function isArray(body: Buffer): boolean {
  return body.find((byte) => !spaces.has(byte)) === openBracket;
}

function argumentsOf({ params }: Fields): Fields {
  const { arguments: args } = (params ?? {}) as Fields;
  return (args ?? {}) as Fields;
}

function send(
  { status, contentType, body }: ProtocolReply,
  { response }: Call,
  { requestId }: RequestRecord,
): void {
  if (response.destroyed) return;
  const typed = contentType === null ? ['Cache-Control', 'no-store'] : typedHeaders(contentType);
  const length = ['Content-Length', String(body.length)];
  response.writeHead(status, [...typed, 'X-Request-ID', requestId, ...length]);
  response.end(body);
}
