// The floor: node:http in a cluster, answering a constant body of the requested size.
import cluster from 'node:cluster';
import { createServer } from 'node:http';
import { serveCrew } from './crew.ts';

const [workers = '2', scheduling = 'rr', ...sizes] = process.argv.slice(2);

/** One body per path, made before the first request. */
function createBodies(pairs: readonly string[]): ReadonlyMap<string, Buffer> {
  return new Map(
    pairs.map((pair): [string, Buffer] => {
      const [path = '/', bytes = '0'] = pair.split('=');
      return [path, Buffer.alloc(Number(bytes), 'x')];
    }),
  );
}

function serve(): void {
  const bodies = createBodies(sizes);
  const server = createServer((request, response) => {
    const url = request.url ?? '/';
    const mark = url.indexOf('?');
    const body = bodies.get(mark < 0 ? url : url.slice(0, mark));
    if (body === undefined) {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, {
      'Content-Type': 'application/json; charset=utf-8',
      'Content-Length': body.length,
    });
    response.end(body);
  });
  server.listen(0, '127.0.0.1');
}

if (cluster.isPrimary) {
  cluster.schedulingPolicy = scheduling === 'none' ? cluster.SCHED_NONE : cluster.SCHED_RR;
  serveCrew(Number(workers));
} else serve();
