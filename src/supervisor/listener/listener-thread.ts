// The thread that binds the HTTP socket and then sleeps until it is to be closed.
import { chmodSync, renameSync } from 'node:fs';
import { createServer } from 'node:net';
import { parentPort, workerData } from 'node:worker_threads';
import { backlog, descriptorOf } from '../../shared/process/listening-socket.ts';
import { gateStates, type ThreadOrder, type ThreadReport } from './listener.ts';

const { address, mode, gate } = workerData as ThreadOrder;
const report = (message: ThreadReport) => parentPort?.postMessage(message);
const server = createServer();
server.once('error', (error: NodeJS.ErrnoException) => {
  report({ ok: false, reason: error.code ?? error.message });
});

if (address.kind === 'unix') {
  // Binds under another name, sets the mode, and moves the socket into place. The move replaces a dead socket atomically, and
  // libuv, which unlinks the name that it bound, finds nothing to unlink.
  const temporary = `${address.path}.${process.pid}`;
  server.listen({ path: temporary, backlog }, () => {
    try {
      chmodSync(temporary, mode);
      renameSync(temporary, address.path);
      hold();
    } catch (error) {
      server.close();
      report({ ok: false, reason: (error as NodeJS.ErrnoException).code ?? String(error) });
    }
  });
} else {
  const { host, port } = address;
  server.listen({ port, backlog, ...(host === null ? {} : { host }) }, hold);
}

function hold(): void {
  const bound = server.address();
  const port = bound !== null && typeof bound === 'object' ? bound.port : null;
  report({ ok: true, fd: descriptorOf(server), port });
  const state = new Int32Array(gate);
  Atomics.wait(state, 0, gateStates.held);
  server.close();
  Atomics.store(state, 0, gateStates.closed);
  Atomics.notify(state, 0);
}
