// A real haproxy with the settings of deploy/haproxy, on other ports.
import { spawn, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { signal } from '../processes.ts';
import { createWorkspace } from '../workspace.ts';

/** A balancer. The caller must stop it. */
export type Balancer = { readonly port: number; readonly stop: () => Promise<void> };

/** The settings as they are deployed. */
export const deployedSettings = 'deploy/haproxy/dbhttpd.cfg';

/** The environment in which the program is found: it is where an ordinary user's PATH does not lead. */
export const haproxyEnvironment: NodeJS.ProcessEnv = {
  ...process.env,
  PATH: `${process.env.PATH}:/usr/sbin:/usr/local/sbin`,
};

/** Tells whether the program is here. */
export function hasHaproxy(): boolean {
  return spawnSync('haproxy', ['-v'], { env: haproxyEnvironment }).error === undefined;
}

/** The output of its own check of a file; empty if the file is good. Throws if the program is missing. */
export function checkSettings(path: string): string {
  const { error, status, stderr } = spawnSync('haproxy', ['-c', '-f', path], {
    env: haproxyEnvironment,
    encoding: 'utf8',
  });
  if (error !== undefined) throw error;
  const complaints = stderr.split('\n').filter((line) => /^\[(?:WARNING|ALERT)\]/.test(line));
  return status === 0 ? complaints.join('\n') : stderr;
}

/** Starts it on `port` before three gateways. The caller must wait until it answers. */
export function startHaproxy(port: number, gateways: readonly [number, number, number]): Balancer {
  let pid = 0;
  const workspace = createWorkspace('haproxy', () => {
    if (pid !== 0) signal(pid, 'SIGKILL');
  });
  const path = join(workspace.path, 'haproxy.cfg');
  const ports = [port, ...gateways];
  const text = readFileSync(deployedSettings, 'utf8')
    .replace(/127\.0\.0\.1:909([0-3])/g, (_all, at) => `127.0.0.1:${ports[Number(at)]}`)
    // Not every system allows as many descriptors, and no test reads the log.
    .replace(/^ {4}(?:maxconn 4000|log \/dev\/log local0)$/gm, '');
  writeFileSync(path, text);
  const child = spawn('haproxy', ['-db', '-f', path], { env: haproxyEnvironment, stdio: 'ignore' });
  pid = child.pid ?? 0;
  const ended = new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
    child.once('error', () => resolve());
  });
  return {
    port,
    stop: async () => {
      child.kill('SIGKILL');
      await ended;
      workspace.remove();
    },
  };
}
