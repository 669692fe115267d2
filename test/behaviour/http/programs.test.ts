// The promise that ordinary HTTP clients and proxies work without changes: curl, fetch, Python's http.client and httpx, wrk, and haproxy and
// nginx that keep their connections. Browsers and Prometheus have tests elsewhere. What is not installed is skipped.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { haproxyEnvironment as env } from '../../support/clusters/haproxy.ts';
import { eventually } from '../../support/eventually.ts';
import { readMetric } from '../../support/scrape.ts';
import { useGateway } from '../../support/use-gateway.ts';
import { createWorkspace } from '../../support/workspace.ts';

const { gateway } = useGateway({ workers: 1, pool: 4 });
const url = () => `http://localhost:${gateway.port}`;
const question = (word: string) => JSON.stringify({ sql: 'select ? as word', params: [word] });
const asked = (word: string) => `/db?${encodeURIComponent(`{"SQL":"select '${word}'"}`)}`;
const json = 'Content-Type: application/json';
/** More than a segment, and more than a client puts into one chunk. */
const long = 'x'.repeat(100_000);

/** Runs a program to its end, with this input. Resolves to its output; its exit status must be 0. */
async function run(name: string, args: readonly string[], input = ''): Promise<string> {
  const child = spawn(name, args, { env, stdio: ['pipe', 'pipe', 'pipe'] });
  let [output, errors] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
  // A program that reads no input may have ended.
  child.stdin.on('error', () => {}).end(input);
  const [status] = await once(child, 'close');
  assert.equal(status, 0, errors);
  return output;
}

/** Whether a program can be run. If not, the test is skipped with the reason. */
function isHere(t: TestContext, name: string, args: readonly string[], what = name): boolean {
  const { error, status } = spawnSync(name, args, { env, stdio: 'ignore' });
  if (error === undefined && status === 0) return true;
  t.skip(`${what} is not installed`);
  return false;
}

describe('curl', () => {
  const curl = (args: readonly string[], input?: string) => run('curl', ['-sS', ...args], input);
  const v1 = () => `${url()}/v1/query`;

  test('GET, POST, HTTP/1.0, HEAD, and a compressed reply', async (t) => {
    if (!isHere(t, 'curl', ['--version'])) return;
    assert.match(await curl([`${url()}${asked('get')}`]), /\[\["get"\]\]/);
    assert.match(await curl(['-H', json, '-d', question('post'), v1()]), /\["post"\]/);
    assert.match(await curl(['--http1.0', `${url()}${asked('old')}`]), /\[\["old"\]\]/);
    const old = ['--http1.0', '-i', '-H', json, '-d', question('old'), v1()];
    assert.match(await curl(old), /^HTTP\/1\.1 200 OK\r\n[\s\S]*\["old"\]/);
    assert.match(await curl(['-I', `${url()}/`]), /^HTTP\/1\.1 200 OK\r\n[\s\S]*\r\n\r\n$/);
    const compressed = ['--compressed', '-H', json, '-d', question(long), v1()];
    assert.ok((await curl(compressed)).includes(long));
  });

  test('a body in chunks from its standard input, and one that waits for 100 Continue', async (t) => {
    if (!isHere(t, 'curl', ['--version'])) return;
    const upload = ['-X', 'POST', '-H', json, '-T', '-', v1()];
    assert.ok((await curl(upload, question(long))).includes(long));
    const waits = ['-H', json, '-H', 'Expect: 100-continue', '--expect100-timeout', '60'];
    assert.match(await curl([...waits, '-d', question('waited'), v1()]), /\["waited"\]/);
    const refused = [...waits, '-o', '/dev/null', '-w', '%{http_code}', '-d', 'x', `${url()}/no`];
    assert.equal(await curl(refused), '404');
  });

  test('several requests use one connection, also behind a refusal', async (t) => {
    if (!isHere(t, 'curl', ['--version'])) return;
    const paths = [asked('a'), '/nothing', asked('b')];
    const each = paths.flatMap((path) => ['-o', '/dev/null', `${url()}${path}`]);
    const seen = await curl(['-w', '%{http_code} %{num_connects}\n', ...each]);
    assert.equal(seen, '200 1\n404 0\n200 0\n');
  });
});

test('fetch: side by side, with a body as a text and as a stream', async () => {
  const post = (word: string, body: string | ReadableStream) =>
    fetch(`${url()}/v1/query`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body,
      duplex: 'half',
    } as RequestInit).then(async (reply) => {
      assert.equal(reply.status, 200);
      assert.ok((await reply.text()).includes(`["${word}"]`));
    });
  const words = Array.from({ length: 20 }, (_, n) => `word${n}`);
  await Promise.all(words.map((word) => post(word, question(word))));
  await Promise.all(words.map((word) => post(word, new Blob([question(word)]).stream())));
  const head = await fetch(`${url()}/`, { method: 'HEAD' });
  assert.equal(head.status, 200);
  assert.equal((await fetch(`${url()}/nothing`)).status, 404);
});

const httpClient = `
import http.client, json, sys
client = http.client.HTTPConnection('localhost', int(sys.argv[1]), timeout=60)
def ask(method, path, body=None, chunked=False):
    headers = {'Content-Type': 'application/json'} if body else {}
    if chunked: headers['Transfer-Encoding'] = 'chunked'
    client.request(method, path, iter(body) if chunked else body, headers, encode_chunked=chunked)
    reply = client.getresponse()
    return [reply.status, reply.read().decode(), client.sock is not None]
body = b'''{"sql":"select 'two' as two"}'''
print(json.dumps([ask('GET', '/nothing'), ask('POST', '/v1/query', body), ask('HEAD', '/'),
    ask('POST', '/v1/query', [body[:5], body[5:]], True), ask('GET', '/db?' + '%7B%22SQL%22:%22select+2%22%7D')]))
`;

test("Python's http.client: all on one connection, with a body in chunks", async (t) => {
  if (!isHere(t, 'python3', ['-c', 'import http.client'], 'Python')) return;
  const output = await run('python3', ['-c', httpClient, String(gateway.port)]);
  const replies = JSON.parse(output) as [number, string, boolean][];
  assert.deepEqual(
    replies.map(([status, , isOpen]) => [status, isOpen]),
    [404, 200, 200, 200, 200].map((status) => [status, true]),
  );
  const [, post = '', head, chunked = '', get = ''] = replies.map(([, body]) => body);
  for (const body of [post, chunked]) assert.match(body, /"rows":\[\["two"\]\]/);
  assert.equal(head, '');
  assert.match(get, /\[\[2\]\]/);
});

const httpx = `
import httpx, sys
with httpx.Client(base_url='http://localhost:' + sys.argv[1], timeout=60) as client:
    for n in range(5):
        reply = client.post('/v1/query', json={'sql': 'select ?', 'params': [n]})
        print(reply.status_code, reply.json()['row_count'])
`;

test("Python's httpx", async (t) => {
  if (!isHere(t, 'python3', ['-c', 'import httpx'], "Python's httpx")) return;
  const output = await run('python3', ['-c', httpx, String(gateway.port)]);
  assert.equal(output, '200 1\n'.repeat(5));
});

test('wrk: no error on its connections', async (t) => {
  if (!isHere(t, 'sh', ['-c', 'command -v wrk'], 'wrk')) return;
  const workspace = createWorkspace('wrk', () => {});
  t.after(workspace.remove);
  const script = join(workspace.path, 'delay.lua');
  writeFileSync(script, 'function delay() return 20 end\n');
  const load = ['-t', '1', '-c', '4', '-d', '2s', '--timeout', '30s', '-s', script];
  const output = await run('wrk', [...load, `${url()}${asked('wrk')}`]);
  assert.match(output, /\d+ requests in/);
  assert.doesNotMatch(output, /Socket errors|Non-2xx|^ +0 requests/m);
});

/** A proxy before the gateway that keeps its connections, on a unix socket; stopped after the test. */
async function startProxy(
  t: TestContext,
  name: 'haproxy' | 'nginx',
  settings: (socket: string, directory: string) => string,
): Promise<string> {
  let kill = () => {};
  const workspace = createWorkspace(name, () => kill());
  const [socketPath, file] = [join(workspace.path, 'socket'), join(workspace.path, 'settings')];
  writeFileSync(file, settings(socketPath, workspace.path));
  const args = {
    haproxy: ['-db', '-f', file],
    nginx: ['-p', workspace.path, '-c', file, '-e', 'log'],
  };
  const child = spawn(name, args[name], { env, stdio: 'ignore' });
  kill = () => child.kill('SIGKILL');
  t.after(async () => {
    const gone = child.exitCode === null ? once(child, 'exit') : null;
    kill();
    await gone;
    workspace.remove();
  });
  await eventually(
    `${name} answers`,
    async () => (await ask(socketPath, 'GET', '/nothing')).status === 404,
  );
  return socketPath;
}

type Answer = { readonly status: number; readonly body: string };

/** Asks on a connection of the agent; without one, on a connection of its own. A body without length is sent in chunks. */
function ask(
  socketPath: string,
  method: string,
  path: string,
  { body, agent = false }: { readonly body?: string; readonly agent?: Agent | false } = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers = {
      Host: 'localhost',
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
    };
    const outgoing = request({ socketPath, method, path, headers, agent }, (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
      incoming.once('error', reject);
      incoming.once('end', () =>
        resolve({ status: incoming.statusCode ?? 0, body: Buffer.concat(chunks).toString() }),
      );
    });
    outgoing.once('error', reject);
    if (body !== undefined) outgoing.write(body);
    outgoing.end();
  });
}

/** Each request gets its own reply, and the gateway sees a few connections. */
async function useThrough(t: TestContext, socketPath: string): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 4 });
  t.after(() => agent.destroy());
  const before = await readMetric(gateway, 'dbhttpd_client_connections');
  await Promise.all(
    Array.from({ length: 40 }, async (_, n) => {
      const posted = n % 2 === 0;
      const reply = posted
        ? await ask(socketPath, 'POST', '/v1/query', { agent, body: question(`word${n}`) })
        : await ask(socketPath, 'GET', asked(`word${n}`), { agent });
      assert.equal(reply.status, 200);
      assert.ok(reply.body.includes(`["word${n}"]`), reply.body);
    }),
  );
  assert.equal((await ask(socketPath, 'HEAD', '/', { agent })).body, '');
  assert.equal(
    (await ask(socketPath, 'POST', '/v1/query', { agent, body: question(long) })).status,
    200,
  );
  const streamed = `/db?${encodeURIComponent(`{"SQL":"select repeat('x', 200000)"}`)}`;
  assert.ok((await ask(socketPath, 'GET', streamed, { agent })).body.includes('x'.repeat(200_000)));
  const kept = (await readMetric(gateway, 'dbhttpd_client_connections')) - before;
  assert.ok(kept <= 8, `${kept} connections`);
}

test('haproxy in front, with connections that are kept and shared', async (t) => {
  if (!isHere(t, 'haproxy', ['-v'])) return;
  const socketPath = await startProxy(
    t,
    'haproxy',
    (socket) => `defaults
    mode http
    timeout connect 30s
    timeout client 60s
    timeout server 60s
    http-reuse always
frontend front
    bind ${socket}
    default_backend gateway
backend gateway
    server gateway 127.0.0.1:${gateway.port}
`,
  );
  await useThrough(t, socketPath);
});

test('nginx in front, with connections that are kept', async (t) => {
  if (!isHere(t, 'nginx', ['-v'])) return;
  const socketPath = await startProxy(t, 'nginx', (socket, directory) => {
    const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
    return `daemon off; master_process off; pid ${directory}/pid; error_log ${directory}/log;
      events {}
      http {
        access_log off;
        ${temporary.map((name) => `${name}_temp_path ${directory}/${name};`).join(' ')}
        upstream gateway { server 127.0.0.1:${gateway.port}; keepalive 4; }
        server {
          listen unix:${socket};
          location / {
            proxy_pass http://gateway;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_set_header Host localhost;
            proxy_request_buffering off;
          }
        }
      }`;
  });
  await useThrough(t, socketPath);
});
