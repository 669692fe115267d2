// How another server has understood a request, as its reply says it in a header: a reply to HEAD has no body.
import type { IncomingMessage } from 'node:http';
import type { Reply } from './replies.ts';

/** A request as another server has understood it. */
export type Understood = {
  readonly method: string;
  readonly target: string;
  readonly version: string;
  /** Names and values in turn. */
  readonly headers: readonly string[];
  /** One character a byte. */
  readonly body: string;
};

const name = 'X-Understood';

/** The header of the reply to a request whose body is this. */
export function describe(request: IncomingMessage, body: Buffer): Readonly<Record<string, string>> {
  const { method = '', url: target = '', httpVersion: version, rawHeaders: headers } = request;
  const said: Understood = { method, target, version, headers, body: body.toString('latin1') };
  return { [name]: Buffer.from(JSON.stringify(said)).toString('base64') };
}

/** The requests that the replies tell of, up to the first that the server has refused itself. */
export function understoodIn(replies: readonly Reply[]): readonly Understood[] {
  const all = replies.map((reply) => reply.header(name));
  const refused = all.indexOf(undefined);
  return all
    .slice(0, refused < 0 ? all.length : refused)
    .map((text) => JSON.parse(Buffer.from(text ?? '', 'base64').toString()) as Understood);
}

/** The values of a header. */
export function valuesOf({ headers }: Understood, wanted: string): readonly string[] {
  return headers.filter((_, at) => at % 2 === 1 && headers[at - 1]?.toLowerCase() === wanted);
}
