// Whether the gateway and another reader have understood the same requests in the bytes of one connection. Pure.
import type { Reply } from './replies.ts';
import { type Understood, valuesOf } from './understood.ts';

/** The statuses with which the gateway refuses bytes for their form or their length. */
const formStatuses = [400, 408, 413, 414, 417, 431];
/** These are about a request that was well-formed. */
const contentCodes =
  /"(?:code|CODE)":"(?!BAD_REQUEST|TRANSFER_CODING|BODY_TOO_LARGE|HEADERS_TOO_LARGE|URL_TOO_LONG|REQUEST_TIMEOUT|UNKNOWN_EXPECTATION)/;
/** The statuses of a request that is refused by its head, so its body may be malformed: nothing of it was executed. */
const headStatuses = [401, 403, 404, 405, 406, 415, 417, 421];

/** Whether a reply refuses bytes that are not a request. The gateway reads nothing behind them. */
function refusesForm(reply: Reply): boolean {
  if (!reply.closes) return false;
  // CONNECT, whose target is no path. Any other method that is not allowed comes with those that are.
  if (reply.status === 405) return reply.header('allow') === undefined;
  return formStatuses.includes(reply.status) && !contentCodes.test(reply.body);
}

/**
 * The replies to what the gateway has accepted as requests: those before the first that refuses bytes, without a last one that refuses
 * a request by its head and closes. The body of such a request was not read.
 */
export function acceptedOf(replies: readonly Reply[]): readonly Reply[] {
  const refused = replies.findIndex(refusesForm);
  const count = refused < 0 ? replies.length : refused;
  const last = replies[count - 1];
  const isUnread = last?.closes === true && headStatuses.includes(last.status);
  return replies.slice(0, isUnread ? count - 1 : count);
}

/** A request that the gateway has accepted and another reader has not, or has read otherwise. */
export type Difference = {
  /** The number of accepted requests before it. */
  readonly at: number;
  readonly what: string;
};

/** Finds a request that the gateway has accepted and the reader has refused; null: there is none. */
export function findMissing(
  accepted: readonly Reply[],
  read: readonly Understood[],
): Difference | null {
  if (read.length >= accepted.length) return null;
  const reply = accepted[read.length];
  const isLast = read.length + 1 === accepted.length;
  if (reply === undefined || (isLast && headStatuses.includes(reply.status))) return null;
  return { at: read.length, what: `the gateway answers ${reply.status}, the other refuses it` };
}

/** Finds a request that two readers understand in two ways, among the first `count`; null: there is none. */
export function findDisagreement(
  count: number,
  one: readonly Understood[],
  other: readonly Understood[],
): Difference | null {
  for (let at = 0; at < Math.min(count, one.length, other.length); at += 1) {
    const [left, right] = [one[at], other[at]].map((request) => summarise(request as Understood));
    if (left !== right) return { at, what: `${left} is also read as ${right}` };
  }
  return null;
}

/** The parts of a request that all readers must agree on. */
export function summarise(request: Understood): string {
  const { method, target, body } = request;
  return JSON.stringify({ method, target, host: valuesOf(request, 'host').join(', '), body });
}

/** Fields of the framing: the plain form has its own. */
const framing: readonly string[] = ['connection', 'content-length', 'transfer-encoding'];

/** The same request in the plainest form. */
export function plainForm(request: Understood): string {
  const { method, target, version, headers, body } = request;
  const waits = valuesOf(request, 'expect').some((value) =>
    /(?:^|\W)100-continue(?:\W|$)/i.test(value),
  );
  const left = waits ? [...framing, 'expect'] : framing;
  let head = `${method} ${target} HTTP/${version}\r\n`;
  for (let at = 0; at < headers.length; at += 2) {
    const name = headers[at] as string;
    if (!left.includes(name.toLowerCase())) head += `${name}: ${headers[at + 1]}\r\n`;
  }
  if (version === '1.0') head += 'Connection: keep-alive\r\n';
  if (body !== '') head += `Content-Length: ${body.length}\r\n`;
  return `${head}\r\n${body}`;
}

/** Compares what the gateway has answered with its answer to the plain form. Null: they are the same. */
export function compareReplies(reply: Reply, plain: Reply, at: number): Difference | null {
  const [given, expected] = [reply, plain].map(
    ({ status, body }) => `${status} ${body.replaceAll(/\b[0-9a-f]{12}-[0-9a-z]+\b/g, '…')}`,
  );
  if (given === expected) return null;
  return { at, what: `answered with ${given}, and in its plain form with ${expected}` };
}
