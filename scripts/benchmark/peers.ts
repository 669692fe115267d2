// The peers of a benchmark: the gateway in several settings, and the programs that it is compared with.

export const peers = [
  'gateway',
  'gateway-unix',
  'gateway-unlogged',
  'gateway-post',
  'gateway-v1',
  'gateway-keys',
  'gateway-named',
  'gateway-before',
  'fastify',
  'fastify-tuned',
  'constant',
  'constant-none',
  'client',
  'client-unix',
] as const;

export type Peer = (typeof peers)[number];

/** C clients straight on MariaDB, over TCP or its unix socket; all others are HTTP servers. */
export type Client = 'client' | 'client-unix';

/** Servers that answer without asking a database. */
export type Constant = 'constant' | 'constant-none';

/** Tells whether a peer is a client of the database, without a server of its own. */
export function isClient(peer: Peer): peer is Client {
  return peer === 'client' || peer === 'client-unix';
}

/** Tells whether a peer answers without asking a database. */
export function isConstant(peer: Peer): peer is Constant {
  return peer === 'constant' || peer === 'constant-none';
}

/** The name of each peer in the tables. */
export const peerTitles: Readonly<Record<Peer, string>> = {
  gateway: 'dbhttpd',
  'gateway-unix': 'dbhttpd, unix socket',
  'gateway-unlogged': 'dbhttpd, no access log',
  'gateway-post': 'dbhttpd, POST',
  'gateway-v1': 'dbhttpd, /v1',
  'gateway-keys': 'the same with a key',
  'gateway-named': 'dbhttpd, /v1/named',
  'gateway-before': 'dbhttpd before',
  fastify: 'fastify + mysql2',
  'fastify-tuned': 'the same, tuned',
  constant: 'node:http constant',
  'constant-none': 'the same, SCHED_NONE',
  client: 'C client on MariaDB',
  'client-unix': 'the same, unix socket',
};
