// The access log: a line for every request, as JSON or in Apache's Combined Log Format, in a file of its own or on stdout. A line that cannot
// be written is counted; no request waits or fails for it. No line has a query string, not even the Referer's: SQL literals may be there.
import { performance } from 'node:perf_hooks';
import { defaultClient } from '../../shared/clients/client.ts';
import { createSecondClock, thousandths, threeDigits } from '../../shared/observe/time-text.ts';
import { LineWriter } from '../../shared/process/line-writer.ts';
import type { Observe, Refused, RequestRecord } from './observation.ts';

/** A format of lines, which end with a line feed. */
type LineFormat = {
  readonly finished: (record: RequestRecord, now: number) => string;
  /** For input that is not a request: only the reply is known. */
  readonly refused: (refused: Refused, now: number) => string;
};

/** The limit on a path, user agent or referer in a line, before escaping. */
const maxCharacters = 256;

/** One JSON object per line. A field that does not apply is null. */
function createJsonFormat(): LineFormat {
  const clock = createSecondClock((second) => new Date(second * 1000).toISOString().slice(0, 19));
  const time = (now: number) => `${clock(now)}.${threeDigits[now % 1000]}Z`;
  const asked = remembering(
    (method, path, version) =>
      `"method":"${method}","path":${quote(path ?? '')},"protocol":"HTTP/${version}","status":`,
  );
  const by = remembering(
    (agent, referer) =>
      `"user_agent":${agent === undefined ? null : quote(agent)},` +
      `"referer":${referer === undefined ? null : quote(withoutQuery(referer))}}\n`,
  );
  return {
    finished: (record, now) => {
      const { request, statements, client } = record;
      const user = record.user ?? record.driverUser;
      const { method, headers } = request;
      const ran =
        statements === null
          ? '"queue_ms":null,"db_ms":null,"outcome":null,"rows":null'
          : `"queue_ms":${thousandths(statements.queueMs)},"db_ms":${thousandths(statements.databaseMs)},"outcome":"${statements.outcome}","rows":${statements.rows}`;
      return (
        `{"time":"${time(now)}","address":"${addressOf(record.startAddress)}","client":${client === null ? null : `"${client}"`},` +
        `${asked(method, record.head.path, record.httpVersion)}${record.status},` +
        `"code":${record.code === null ? null : `"${record.code}"`},"bytes":${record.bytes},"complete":${record.isComplete},` +
        `"duration_ms":${thousandths(performance.now() - record.startedAt)},${ran},"request_id":"${record.requestId}","trace_id":${record.traceId === null ? null : `"${record.traceId}"`},` +
        `"user":${user === null ? null : quote(user)},` +
        `"tool":${record.tool === null ? null : `"${record.tool}"`},` +
        `"named":${record.named === null ? null : `"${record.named}"`},` +
        by(headers['user-agent'], headers.referer)
      );
    },
    refused: ({ address, status, code, bytes, requestId }, now) =>
      `{"time":"${time(now)}","address":"${addressOf(address)}","client":null,"method":null,"path":null,"protocol":null,` +
      `"status":${status},"code":"${code}","bytes":${bytes},"complete":true,"duration_ms":null,"queue_ms":null,"db_ms":null,` +
      `"outcome":null,"rows":null,"request_id":"${requestId}","trace_id":null,"user":null,"tool":null,"named":null,"user_agent":null,"referer":null}\n`,
  };
}

/** Apache's `%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-agent}i"`, in UTC. */
function createCombinedFormat(): LineFormat {
  const clock = createSecondClock(apacheTime);
  const size = (bytes: number) => (bytes === 0 ? '-' : String(bytes));
  return {
    finished: (record, now) => {
      const { request } = record;
      const { 'user-agent': agent, referer } = request.headers;
      const target = `${request.method} ${escapeCombined(record.head.path)} HTTP/${record.httpVersion}`;
      const from = referer === undefined ? '-' : escapeCombined(withoutQuery(referer));
      return (
        `${addressOf(record.startAddress)} - ${userOf(record)} [${clock(now)}] "${target}" ${record.status} ${size(record.bytes)} ` +
        `"${from}" "${agent === undefined ? '-' : escapeCombined(agent)}"\n`
      );
    },
    refused: ({ address, status, bytes }, now) =>
      `${addressOf(address)} - - [${clock(now)}] "-" ${status} ${size(bytes)} "-" "-"\n`,
  };
}

const months = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ');

function apacheTime(second: number): string {
  const [date = '', time = ''] = new Date(second * 1000).toISOString().slice(0, 19).split('T');
  const [year, month, day] = date.split('-');
  return `${day}/${months[Number(month) - 1]}/${year}:${time} +0000`;
}

function addressOf(remote: string): string {
  if (remote === '') return 'unix:';
  return remote.startsWith('::ffff:') ? remote.slice(7) : remote;
}

/** The client, its user, or both as `client/user`; the client `default` is left out. Spaces are escaped, because a space ends the field. */
function userOf({ client, user: subject, driverUser }: RequestRecord): string {
  const user = subject ?? driverUser;
  const name = client === null || client === defaultClient.name ? '' : client;
  const shown = user === null || user === '' ? '' : escapeCombined(user).replaceAll(' ', '\\x20');
  return [name, shown].filter((part) => part !== '').join('/') || '-';
}

function withoutQuery(url: string): string {
  const end = url.search(/[?#]/);
  return end < 0 ? url : url.slice(0, end);
}

type Part = string | undefined;

/** Keeps the last result: clients send the same values again and again. */
function remembering(
  make: (one: Part, two: Part, three: Part) => string,
): (one: Part, two: Part, three?: Part) => string {
  let [last, lastTwo, lastThree]: Part[] = [];
  let made = make(last, lastTwo, lastThree);
  return (one, two, three) => {
    if (one !== last || two !== lastTwo || three !== lastThree) made = make(one, two, three);
    last = one;
    lastTwo = two;
    lastThree = three;
    return made;
  };
}

const plain = /^[ !#-[\]-~]*$/;
const beyondAscii = /[^ -~]/g;

function quote(text: string): string {
  const short = text.length > maxCharacters ? text.slice(0, maxCharacters) : text;
  if (plain.test(short)) return `"${short}"`;
  // JSON does not escape DEL and the C1 controls, and a terminal obeys them.
  return JSON.stringify(short).replace(beyondAscii, (c) => `\\u${hex(c, 4)}`);
}

function escapeCombined(text: string): string {
  const short = text.length > maxCharacters ? text.slice(0, maxCharacters) : text;
  if (plain.test(short)) return short;
  return short.replace(/["\\]/g, '\\$&').replace(beyondAscii, (c) => `\\x${hex(c, 2)}`);
}

function hex(character: string, digits: number): string {
  return character.charCodeAt(0).toString(16).padStart(digits, '0');
}

/** An open access log. */
export type AccessLog = {
  readonly observe: Observe;
  /** Opens the file again. Returns why that failed; null: it did not. */
  readonly reopen: () => string | null;
  readonly flush: () => void;
  readonly lost: () => number;
};

/** The descriptor of stdout. */
export const stdout = 1;

/** The path of the access log: that of the log, with `.access.log` in place of `.log`. */
export function accessLogPath(log: string): string {
  return `${log.endsWith('.log') ? log.slice(0, -4) : log}.access.log`;
}

/**
 * Opens the access log. If that fails, lines are lost until `reopen` succeeds, and service goes on.
 * @param onProblem called with the reason if it cannot be opened
 * @param onRecovered called with the number of lines that were lost, once lines can be written again
 */
export function openAccessLog(
  format: 'json' | 'combined',
  target: string | number,
  onProblem: (reason: string) => void = () => {},
  onRecovered: (lost: number) => void = () => {},
): AccessLog {
  const { finished, refused } = format === 'json' ? createJsonFormat() : createCombinedFormat();
  let writer: LineWriter | null = null;
  let lostWithoutFile = 0;
  const write = (line: string) => {
    if (writer === null) lostWithoutFile += 1;
    else writer.write(line);
  };
  const open = (): string | null => {
    try {
      writer = new LineWriter(target, onRecovered);
      if (lostWithoutFile > 0) onRecovered(lostWithoutFile);
      return null;
    } catch (error) {
      return (error as NodeJS.ErrnoException).code ?? String(error);
    }
  };
  const problem = open();
  if (problem !== null) onProblem(problem);
  return {
    observe: (observation) => {
      if (observation.kind === 'request finished') write(finished(observation.record, Date.now()));
      else if (observation.kind === 'malformed request')
        write(refused(observation.refused, Date.now()));
    },
    reopen: () => (writer === null ? open() : writer.reopen()),
    flush: () => writer?.flush(),
    lost: () => lostWithoutFile + (writer?.lost() ?? 0),
  };
}
