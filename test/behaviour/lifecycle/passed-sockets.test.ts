// If a listening descriptor cannot be passed on, because of Node or of the system, the gateway does not start, and reports why.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import { startGateway } from '../../support/gateway.ts';
import type { Settings } from '../../support/ini-text.ts';
import { createWorkspace } from '../../support/workspace.ts';

const hook = new URL('./support/no-passed-sockets.js', import.meta.url).href;

let database: Database;
before(async () => {
  database = await startDatabase();
});
after(() => database?.stop());

const start = (options: string, settings: Settings = {}) =>
  startGateway({ database, settings: { workers: 1, ...settings }, env: { NODE_OPTIONS: options } });

test('if a worker cannot listen on a unix socket, the gateway does not start, and reports why', async () => {
  const workspace = createWorkspace('unix', () => {});
  try {
    await assert.rejects(
      start(`--import ${hook}`, { listen: join(workspace.path, 'http') }),
      /exit 69\n(.|\n)*does not let a worker listen on a unix socket/,
    );
  } finally {
    workspace.remove();
  }
});

test("if the kernel's table of sockets cannot be read, the gateway does not start, and reports why", async () => {
  await assert.rejects(start(`--import ${hook}?table`), /exit 69\n(.|\n)*\/proc\/self\/net\/tcp/);
});
