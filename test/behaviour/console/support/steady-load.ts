// Clients on connections that stay, each with one request after the other, until they are stopped.
import { Agent, type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';

/** A load. The caller must stop it. */
export type SteadyLoad = {
  /** The number of replies by status; 0: the connection was lost. */
  readonly replies: () => Readonly<Record<number, number>>;
  /** Asks no more; what is under way is given up. */
  readonly stop: () => Promise<void>;
};

/** The next request, as a body of /v1/query. */
export type NextQuestion = (n: number) => object;

/** Starts the load with this many clients. */
export function startSteadyLoad(
  { port }: { readonly port: number },
  clients: number,
  next: NextQuestion,
): SteadyLoad {
  const agent = new Agent({ keepAlive: true, maxSockets: clients });
  const replies: Record<number, number> = {};
  let [isOver, n] = [false, 0];
  const ask = async () => {
    while (!isOver) {
      const status = await post(agent, port, JSON.stringify(next(n++))).catch(() => 0);
      replies[status] = (replies[status] ?? 0) + 1;
    }
  };
  const all = Promise.all(Array.from({ length: clients }, ask));
  return {
    replies: () => replies,
    stop: async () => {
      isOver = true;
      agent.destroy();
      await all;
    },
  };
}

async function post(agent: Agent, port: number, body: string): Promise<number> {
  const reply = await new Promise<IncomingMessage>((resolve, reject) => {
    const headers = { 'Content-Type': 'application/json' };
    const options = { host: '127.0.0.1', port, path: '/v1/query', method: 'POST', headers, agent };
    request(options, resolve).once('error', reject).end(body);
  });
  await text(reply);
  return reply.statusCode ?? 0;
}
