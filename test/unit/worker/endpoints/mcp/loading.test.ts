// The protocol's package costs time and memory only where agents ask: no file of a worker imports it before the first message.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import test from 'node:test';

/** Prints the package's name on stderr whenever it is imported. */
const hooks = `export async function resolve(specifier, context, next) {
  if (specifier.startsWith('@modelcontextprotocol/')) process._rawDebug('imported', specifier);
  return next(specifier, context);
}`;
const inData = (code: string) => `data:text/javascript,${encodeURIComponent(code)}`;
const register = `import { register } from 'node:module'; register(${JSON.stringify(inData(hooks))});`;

function importedBy(code: string): string {
  const { stderr, status } = spawnSync(
    process.execPath,
    ['--import', inData(register), '--input-type=module', '--eval', code],
    { encoding: 'utf8' },
  );
  assert.equal(status, 0, stderr);
  return stderr;
}

const file = (path: string) =>
  JSON.stringify(new URL(`../../../../../src/worker/${path}`, import.meta.url).href);

test('a worker with all of its endpoints imports nothing of the package', () => {
  const stderr = importedBy(`await import(${file('service.js')})`);
  assert.ok(!stderr.includes('imported'), stderr);
});

test('the first message does', () => {
  const stderr = importedBy(`
    const { Protocol } = await import(${file('endpoints/mcp/protocol.js')});
    const body = { jsonrpc: '2.0', id: 1, method: 'ping' };
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
    await new Protocol().answer({ method: 'POST', headers, body, definitions: [], call: () => null });`);
  assert.match(stderr, /imported @modelcontextprotocol\/server/);
});
