// The descriptor of a listening server: the kernel's tables lead to it, whatever the server is bound to.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { renameSync } from 'node:fs';
import {
  connect,
  createServer,
  type ListenOptions,
  type NetConnectOpts,
  type Server,
} from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { descriptorOf } from '../../../../src/shared/process/listening-socket.ts';
import { createWorkspace } from '../../../support/workspace.ts';

/** Answers each connection with a word, on the descriptor that it inherits. */
const heir = `
require('node:net')
  .createServer((socket) => socket.end('heir'))
  .listen({ fd: 3 }, () => console.log('listening'));
`;

/** The output of a process that inherits the descriptor, when the server itself is closed. */
async function askHeir(server: Server, address: NetConnectOpts): Promise<string> {
  const fd = descriptorOf(server);
  const child = spawn(process.execPath, ['-e', heir], { stdio: ['ignore', 'pipe', 'inherit', fd] });
  try {
    await once(child.stdout as NonNullable<typeof child.stdout>, 'data');
    await new Promise((resolve) => server.close(resolve));
    const socket = connect(address).setEncoding('utf8');
    return (await socket.toArray()).join('');
  } finally {
    child.kill('SIGKILL');
  }
}

async function listen(options: ListenOptions): Promise<Server> {
  const server = createServer((socket) => socket.end('the first owner'));
  server.listen(options);
  await once(server, 'listening');
  return server;
}

for (const host of ['0.0.0.0', '127.0.0.1', '::', '::1']) {
  test(`a process that inherits the descriptor of ${host} serves its port`, async () => {
    // The other server has a descriptor too, which is not taken.
    const other = await listen({ host, port: 0 });
    const server = await listen({ host, port: 0 });
    const { port } = server.address() as { readonly port: number };
    const reached = host === '::' ? '::1' : host === '0.0.0.0' ? '127.0.0.1' : host;
    assert.equal(await askHeir(server, { port, host: reached }), 'heir');
    other.close();
  });
}

test('a process that inherits the descriptor of a unix socket serves it, also under a new name', async () => {
  const directory = createWorkspace('socket', () => {});
  try {
    const [bound, path] = [join(directory.path, 'a name'), join(directory.path, 'renamed')];
    const server = await listen({ path: bound });
    renameSync(bound, path);
    assert.equal(await askHeir(server, { path }), 'heir');
  } finally {
    directory.remove();
  }
});

test('a server that does not listen has no descriptor', () => {
  assert.throws(() => descriptorOf(createServer()), /does not list/);
});
