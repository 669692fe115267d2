// The two other readers of a stream: node's own HTTP server, and haproxy in front of it.
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { haproxyEnvironment } from '../../../test/support/clusters/haproxy.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { createWorkspace } from '../../../test/support/workspace.ts';

/** The sockets of the running readers. The caller must stop them. */
export type Readers = {
  readonly node: { readonly path: string };
  /** Null: haproxy is not asked. */
  readonly haproxy: { readonly path: string } | null;
  readonly stop: () => Promise<void>;
};

/** Its limits are above the gateway's: 16 KiB of headers, 100 of them. */
const settings = (front: string, node: string) => `global
    tune.bufsize 131072
    tune.http.maxhdr 32767
    maxconn 500
defaults
    mode http
    retries 5
    retry-on all-retryable-errors
    timeout connect 30s
    timeout client 60s
    timeout server 60s
    http-reuse always
frontend front
    bind ${front}
    default_backend node
backend node
    server node ${node}
`;

/** Starts node's server, and haproxy if it is to be asked too. */
export async function startReaders(withHaproxy: boolean): Promise<Readers> {
  const children: ChildProcess[] = [];
  const kill = () => {
    for (const child of children) child.kill('SIGKILL');
  };
  const workspace = createWorkspace('readers', kill);
  const [node, front] = [join(workspace.path, 'node'), join(workspace.path, 'haproxy')];
  const stop = async () => {
    const running = children.filter(
      ({ exitCode, signalCode }) => exitCode === null && signalCode === null,
    );
    const gone = running.map((child) => once(child, 'exit'));
    kill();
    await Promise.all(gone);
    workspace.remove();
  };
  try {
    const reader = fork(new URL('./reader.js', import.meta.url), [node]);
    children.push(reader);
    await once(reader, 'message');
    if (withHaproxy) {
      const path = join(workspace.path, 'haproxy.cfg');
      writeFileSync(path, settings(front, node));
      children.push(
        spawn('haproxy', ['-db', '-f', path], { env: haproxyEnvironment, stdio: 'ignore' }),
      );
      await eventually('haproxy listens', () => existsSync(front));
    }
  } catch (error) {
    await stop();
    throw error;
  }
  return { node: { path: node }, haproxy: withHaproxy ? { path: front } : null, stop };
}
