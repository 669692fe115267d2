// The container's health check: exit status 0 if /livez answers 200 within 2 s. It finds the address in the gateway's own
// configuration: any port, HTTPS, a unix socket. DBHTTPD_HEALTH_URL names another address, http or https.
import { readdirSync, readFileSync } from 'node:fs';
import { request as requestPlain } from 'node:http';
import { request as requestTls } from 'node:https';
import { join } from 'node:path';

const withinMs = 2000;
const command = join(import.meta.dirname, 'dist/program/supervisor/main.js');

try {
  const url = process.env.DBHTTPD_HEALTH_URL;
  const target = url === undefined ? await findTarget() : parts(url);
  process.exitCode = (await statusOf(target)) === 200 ? 0 : 1;
} catch {
  process.exitCode = 1;
}

function parts(url) {
  const { protocol, hostname, port } = new URL(url);
  return { isTls: protocol === 'https:', host: hostname.replace(/^\[|\]$/g, ''), port };
}

/** The address at which the gateway of this container listens, from its command line and its file. */
async function findTarget() {
  const { parseArguments } = await import('./dist/program/supervisor/arguments.js');
  const { parseEntries } = await import('./dist/program/shared/config/config.js');
  const { readSection } = await import('./dist/program/shared/config/ini-section.js');
  const { configPath, sections } = parseArguments(commandLine());
  const { values } = parseEntries(
    readSection(readFileSync(configPath, 'utf8'), sections[0], () => true),
  );
  const { listen, https_cert: certificate } = values;
  const isTls = certificate !== null;
  if (listen.kind === 'unix') return { isTls, socketPath: listen.path };
  const anywhere = { '0.0.0.0': '127.0.0.1', '::': '::1' };
  const host = listen.host ?? '127.0.0.1';
  return { isTls, host: anywhere[host] ?? host, port: listen.port };
}

/** The arguments of the supervisor. It need not be process 1: there may be an init, or a pod's pause. */
function commandLine() {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  for (const pid of pids.sort((one, other) => one - other)) {
    const words = argumentsOf(pid);
    const at = words.indexOf(command);
    // An init has the command among its own arguments, which are the same.
    if (at >= 0) return words.slice(at + 1);
  }
  throw new Error('no gateway runs here');
}

function argumentsOf(pid) {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1);
  } catch {
    return [];
  }
}

function statusOf({ isTls, ...address }) {
  const request = isTls ? requestTls : requestPlain;
  // The certificate has a public name, and this request goes to the same container, without a secret.
  const options = { ...address, path: '/livez', rejectUnauthorized: false };
  return new Promise((resolve, reject) => {
    const asked = request({ ...options, signal: AbortSignal.timeout(withinMs) }, (reply) => {
      reply.resume();
      resolve(reply.statusCode);
    });
    asked.once('error', reject);
    asked.end();
  });
}
