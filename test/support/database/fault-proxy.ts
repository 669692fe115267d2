// A TCP proxy between gateway and database that does what networks and servers do on bad days, on request.
// A reply is what the server sends after a statement was forwarded, so with
// statements pipelined on one connection a fault may meet the reply before it.
import { createServer, type NetConnectOpts, type Socket } from 'node:net';
import { eventually } from '../eventually.ts';
import { type Direction, type Fault, FaultLink } from './fault-link.ts';
import type { Query } from './mysql-wire.ts';

export type { Direction, Fault } from './fault-link.ts';

/** A rule that is in force. `hits`: how many statements it has met. */
export type Rule = { readonly hits: () => number; readonly remove: () => void };

/** A running proxy. The caller must stop it. */
export type FaultProxy = {
  readonly host: string;
  readonly port: number;
  /** Every statement that came from a client, in order: proof of what was sent, and how often. */
  readonly statements: readonly string[];
  /** The same with their query attributes. */
  readonly queries: readonly Query[];
  /** Client connections: all that there were, and those open now. */
  readonly connections: () => { readonly total: number; readonly open: number };
  /** Does `fault` to each statement that matches, at most `times` of them. The oldest rule that fits wins. */
  readonly on: (
    matches: RegExp | ((statement: string) => boolean),
    fault: Fault,
    options?: { readonly times?: number },
  ) => Rule;
  /** The number of connections with an answer that a `stall` holds back. */
  readonly answersHeld: () => number;
  /** Passes on all statements that a `hold`, and all replies that a `stall` holds back. */
  readonly release: () => void;
  /**
   * Lets nothing pass in this direction, by default in both. New connections are accepted and meet silence even if one direction is open,
   * because they would need both.
   */
  readonly partition: (direction?: Direction) => void;
  /** Lets new connections pass again; those that were cut off stay cut off. */
  readonly admit: () => void;
  readonly heal: () => void;
  /** Refuses new connections by RST right after they were accepted; `false` takes it back. */
  readonly refuse: (on: boolean) => void;
  /** Listens on the port, or stops. Without a listener the system refuses connections, as if no server ran. */
  readonly listen: (on: boolean) => Promise<void>;
  /** Cuts all open connections. */
  readonly cutAll: (how?: 'fin' | 'reset') => void;
  readonly stop: () => Promise<void>;
};

type ActiveRule = {
  readonly matches: (statement: string) => boolean;
  readonly fault: Fault;
  readonly times: number;
  hits: number;
};

/**
 * Starts a proxy on a port of the loopback address (the system's choice, unless given). If the target is a function, it is called for each
 * connection.
 */
export async function startFaultProxy(
  upstream: NetConnectOpts | (() => NetConnectOpts),
  { port = 0 } = {},
): Promise<FaultProxy> {
  const links = new Map<Socket, FaultLink>();
  const rules: ActiveRule[] = [];
  const statements: string[] = [];
  const queries: Query[] = [];
  let total = 0;
  let partitioned = false;
  let refusing = false;

  const faultFor = (query: Query): Fault | null => {
    const { statement } = query;
    statements.push(statement);
    queries.push(query);
    const rule = rules.find((one) => one.hits < one.times && one.matches(statement));
    if (rule === undefined) return null;
    rule.hits += 1;
    return rule.fault;
  };
  const chooseUpstream = typeof upstream === 'function' ? upstream : () => upstream;
  const server = createServer((client) => {
    total += 1;
    if (refusing) return void client.resetAndDestroy();
    const link = new FaultLink(client, chooseUpstream(), faultFor);
    links.set(client, link);
    client.once('close', () => links.delete(client));
    if (partitioned) link.freeze('both');
  });
  const cutAll = (how: 'fin' | 'reset' = 'reset') => {
    for (const link of links.values()) link.end(how);
  };
  const listening = await listen(server, port);

  return {
    host: '127.0.0.1',
    port: listening,
    statements,
    queries,
    connections: () => ({ total, open: links.size }),
    on: (matches, fault, { times = Number.POSITIVE_INFINITY } = {}) => {
      const test = matches instanceof RegExp ? (text: string) => matches.test(text) : matches;
      const rule: ActiveRule = { matches: test, fault, times, hits: 0 };
      rules.push(rule);
      return { hits: () => rule.hits, remove: () => removeFrom(rules, rule) };
    },
    answersHeld: () => [...links.values()].filter(({ holdsAnswer }) => holdsAnswer).length,
    release: () => {
      for (const link of links.values()) link.release();
    },
    partition: (direction = 'both') => {
      partitioned = true;
      for (const link of links.values()) link.freeze(direction);
    },
    admit: () => {
      partitioned = false;
    },
    heal: () => {
      partitioned = false;
      for (const link of links.values()) link.thaw();
    },
    refuse: (on) => {
      refusing = on;
    },
    listen: async (on) => {
      if (on === server.listening) return;
      if (!on) return void server.close();
      // Another's connection may have left from this port meanwhile.
      const isBack = () => listen(server, listening).then(() => true);
      await eventually(`port ${listening} can be listened on`, isBack);
    },
    cutAll,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        cutAll();
      }),
  };
}

function removeFrom(rules: ActiveRule[], rule: ActiveRule): void {
  const index = rules.indexOf(rule);
  if (index >= 0) rules.splice(index, 1);
}

function listen(server: ReturnType<typeof createServer>, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => {
      server.off('error', reject);
      const address = server.address();
      resolve(typeof address === 'object' && address ? address.port : port);
    });
  });
}
