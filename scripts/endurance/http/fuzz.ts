// Sends mutated streams to the gateway, and what it accepts to the other readers, and compares what each has understood.
import {
  acceptedOf,
  compareReplies,
  type Difference,
  findDisagreement,
  findMissing,
  plainForm,
  summarise,
} from './judge.ts';
import { knownDifference } from './known-differences.ts';
import { PlainClient } from './plain.ts';
import type { Readers } from './readers.ts';
import { type Reply, readReplies } from './replies.ts';
import { drawStream, lastPath, padding, type Stream } from './streams.ts';
import { talk } from './talk.ts';
import { type Understood, understoodIn } from './understood.ts';

/** The promises that a run judges. */
export const httpPromises = {
  valid: 'a request that was not changed gets its own reply',
  node: "what the gateway accepts is the same request for node's server",
  haproxy: 'what the gateway accepts is the same request for haproxy',
  ends: 'every connection is answered and ended',
} as const;

/** A promise that was broken, with all that is needed to see it again. */
export type Breach = { readonly promise: string; readonly example: string };

/** The findings of a run. */
export type Outcome = {
  readonly breaches: readonly Breach[];
  /** The number of times that each thing happened. */
  readonly counts: ReadonlyMap<string, number>;
};

/** The run. */
export type Plan = {
  readonly port: number;
  readonly readers: Readers;
  readonly requests: number;
  readonly seed: number;
  /** Called now and then with the number of streams so far. */
  readonly progress?: (done: number) => void;
};

const lanes = 16;

/** Sends the streams of the seeds from `seed` on. A stream has one mutated request, or more, and counts once. */
export async function fuzzHttp({
  port,
  readers,
  requests,
  seed,
  progress,
}: Plan): Promise<Outcome> {
  const breaches: Breach[] = [];
  const counts = new Map<string, number>();
  let next = 0;
  const lane = async () => {
    const trial = new Trial(port, readers, counts, breaches);
    for (let n = next++; n < requests; n = next++) {
      await trial.run(drawStream(seed + n));
      if (n % 10_000 === 9_999) progress?.(n + 1);
    }
    trial.close();
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return { breaches, counts };
}

/** One lane of a run. */
class Trial {
  readonly #gateway: { readonly port: number; readonly host: string };
  readonly #plain: PlainClient;
  readonly #readers: Readers;
  readonly #counts: Map<string, number>;
  readonly #breaches: Breach[];

  constructor(port: number, readers: Readers, counts: Map<string, number>, breaches: Breach[]) {
    this.#gateway = { port, host: '127.0.0.1' };
    this.#plain = new PlainClient(port);
    this.#readers = readers;
    this.#counts = counts;
    this.#breaches = breaches;
  }

  close(): void {
    this.#plain.close();
  }

  async run(stream: Stream): Promise<void> {
    const pieces = piecesOf(stream);
    const heard = await talk(this.#gateway, pieces);
    const replies = readReplies(heard.text);
    if (!heard.ended || replies === null || replies.length === 0) {
      this.#breach(httpPromises.ends, stream, JSON.stringify(heard));
      return;
    }
    for (const { status } of replies) this.#count(`${status}`);
    if (stream.valid !== null) this.#judgeValid(stream, replies);
    const accepted = acceptedOf(replies);
    if (accepted.length === 0) return;
    this.#count('accepted', accepted.length);
    const [bytes, wanted] = [Buffer.concat(pieces), accepted.length];
    const [node, haproxy] = await Promise.all([
      this.#read(this.#readers.node, bytes, wanted, true),
      this.#readers.haproxy === null
        ? null
        : this.#read(this.#readers.haproxy, bytes, wanted, false),
    ]);
    this.#judge('node', stream, findMissing(accepted, node));
    this.#judge('node', stream, await this.#compare(accepted, node));
    if (haproxy === null) return;
    this.#judge('haproxy', stream, findMissing(accepted, haproxy));
    this.#judge('haproxy', stream, findDisagreement(accepted.length, node, haproxy));
  }

  /** The requests that a reader finds. If it is less than `wanted`, it is asked again: haproxy may lose a connection to its server. */
  async #read(
    target: { readonly path: string },
    bytes: Buffer,
    wanted: number,
    thenEnd: boolean,
  ): Promise<readonly Understood[]> {
    let read: readonly Understood[] = [];
    for (let left = 2; left > 0 && read.length < wanted; left -= 1) {
      const { text } = await talk(target, [bytes], { wanted, thenEnd });
      if (text === '')
        throw new Error(`no answer at ${target.path} to ${toAscii(bytes.toString('latin1'))}`);
      read = understoodIn(readReplies(text) ?? []);
    }
    return read;
  }

  /** Asks for what node has understood, in plain form, and compares the replies. */
  async #compare(
    accepted: readonly Reply[],
    node: readonly Understood[],
  ): Promise<Difference | null> {
    for (const [at, reply] of accepted.entries()) {
      const request = node[at];
      if (request === undefined) return null;
      if (request.target === lastPath && reply.status === 200) continue;
      const plain = await this.#plain.ask(plainForm(request));
      const found =
        plain === null
          ? { at, what: 'no reply to its plain form' }
          : compareReplies(reply, plain, at);
      if (found !== null) return { at, what: `${summarise(request)} ${found.what}` };
    }
    return null;
  }

  #judgeValid(stream: Stream, replies: readonly Reply[]): void {
    for (const [at, { status, shows, closes }] of (stream.valid ?? []).entries()) {
      const reply = replies[at];
      if (reply?.status !== status || !reply.body.includes(shows)) {
        const given = `${reply?.status} ${reply?.body}`;
        this.#breach(
          httpPromises.valid,
          stream,
          `request ${at} got ${given}, not ${status} ${shows}`,
        );
      }
      if (closes) return;
    }
  }

  #judge(reader: 'node' | 'haproxy', stream: Stream, found: Difference | null): void {
    if (found === null) return;
    const known = knownDifference(reader, stream.text);
    if (known === null) this.#breach(httpPromises[reader], stream, found.what);
    else this.#count(known);
  }

  #breach(promise: string, { seed, text }: Stream, what: string): void {
    const repeat = `scripts/soak http --seed ${seed} --requests 1`;
    this.#breaches.push({
      promise,
      example: `${repeat}\n  sent ${toAscii(text)}\n  ${what}`,
    });
  }

  #count(what: string, by = 1): void {
    this.#counts.set(what, (this.#counts.get(what) ?? 0) + by);
  }
}

function piecesOf({ text, cuts }: Stream): readonly Buffer[] {
  const bytes = Buffer.from(text + padding, 'latin1');
  const ends = [...cuts, bytes.length];
  return ends
    .map((end, n) => bytes.subarray(ends[n - 1] ?? 0, end))
    .filter(({ length }) => length > 0);
}

/** One character a byte, as a literal of JavaScript in ASCII. */
function toAscii(text: string): string {
  return JSON.stringify(text).replaceAll(
    /[\x7f-\xff]/g,
    (byte) => `\\x${byte.charCodeAt(0).toString(16)}`,
  );
}
