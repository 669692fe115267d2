// nginx as a shared cache before a gateway, on a unix socket of its own.
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { createReply, type Reply } from '../../../support/ask.ts';
import { blackBox } from '../../../support/black-box.ts';
import { eventually } from '../../../support/eventually.ts';
import { createWorkspace } from '../../../support/workspace.ts';

/** A cache that was started; its owner must stop it. */
export type NginxCache = {
  /** GET through the cache. Rejects if the reply breaks off. */
  readonly get: (path: string, headers?: Readonly<Record<string, string>>) => Promise<Reply>;
  readonly stop: () => Promise<void>;
};

/** How the cache has answered: from its store, or by asking the gateway. */
export const cacheStatusOf = (reply: Reply) => reply.headers['x-cache'];

/** Starts nginx with `proxy_cache` and nothing else that decides what is stored. */
export async function startNginxCache(
  port: number,
  httpVersion: '1.0' | '1.1',
): Promise<NginxCache> {
  let kill = () => {};
  const workspace = createWorkspace('nginx', () => kill());
  const path = (name: string) => join(workspace.path, name);
  const socketPath = path('socket');
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${path(name)};`,
  );
  writeFileSync(
    path('nginx.conf'),
    `daemon off; master_process off; pid ${path('pid')}; error_log ${path('log')};
     events {}
     http {
       access_log off;
       ${temporary.join(' ')}
       proxy_cache_path ${path('cache')} keys_zone=shared:1m;
       server {
         listen unix:${socketPath};
         location / {
           proxy_pass http://127.0.0.1:${port};
           proxy_http_version ${httpVersion};
           proxy_set_header Host 127.0.0.1;
           proxy_cache shared;
           proxy_cache_key $request_uri;
           add_header X-Cache $upstream_cache_status always;
         }
       }
     }`,
  );
  const child = spawn(
    'nginx',
    ['-p', workspace.path, '-c', path('nginx.conf'), '-e', path('log')],
    {
      stdio: 'ignore',
    },
  );
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  kill = () => child.kill('SIGKILL');
  // The socket's file exists before nginx listens on it.
  await eventually('nginx accepts connections', () => canConnect(socketPath));
  return {
    get: (target, headers = {}) => ask(socketPath, target, headers),
    stop: async () => {
      child.kill('SIGTERM');
      await gone;
      workspace.remove();
    },
  };
}

function canConnect(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(socketPath);
    socket.once('connect', () => resolve(true));
    socket.once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}

function ask(
  socketPath: string,
  path: string,
  headers: Readonly<Record<string, string>>,
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(30_000);
    const outgoing = request({ socketPath, path, headers, agent: false, signal }, (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
      incoming.once('error', reject);
      incoming.once('end', () => {
        const reply = createReply(
          incoming.statusCode ?? 0,
          incoming.headers,
          Buffer.concat(chunks),
        );
        blackBox.recordRequest(`cache: ${path} -> ${reply.status} ${cacheStatusOf(reply)}`);
        resolve(reply);
      });
    });
    outgoing.once('error', reject);
    outgoing.end();
  });
}
