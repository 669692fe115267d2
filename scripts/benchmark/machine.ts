// The conditions of a run: machine and versions of everything that took part.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import os from 'node:os';
import { join } from 'node:path';

const top = join(import.meta.dirname, '../../..');

function readPackageVersion(directory: string): string {
  const path = join(top, directory, 'package.json');
  if (!existsSync(path)) return 'unknown';
  return (JSON.parse(readFileSync(path, 'utf8')) as { version: string }).version;
}

function firstLine(command: string, args: readonly string[]): string {
  const { stdout } = spawnSync(command, args, { cwd: top, encoding: 'utf8', timeout: 10_000 });
  return (stdout ?? '').split('\n')[0]?.trim() || 'unknown';
}

/** The conditions that a reader needs to compare the figures with others. */
export function describeConditions(mariadb: string) {
  const [cpu] = os.cpus();
  return {
    machine: {
      cpu: cpu?.model.trim() || 'unknown',
      cores: os.availableParallelism(),
      memoryMb: Math.round(os.totalmem() / 1e6),
      kernel: `${os.type()} ${os.release()} ${os.arch()}`,
      loadBefore: os.loadavg().map((load) => Math.round(load * 100) / 100),
    },
    versions: {
      dbhttpd: readPackageVersion('.'),
      commit: firstLine('git', ['describe', '--always', '--dirty']),
      node: process.version,
      mariadb,
      fastify: readPackageVersion('node_modules/fastify'),
      mysql2: readPackageVersion('node_modules/mysql2'),
      wrk: firstLine('wrk', ['-v']),
      sysbench: firstLine('sysbench', ['--version']),
    },
  };
}

/**
 * CPU per request is no way out: while others took 0.4 to 1.6 of two cores, one build's point query at 64 to 256
 * connections was seen to cost 52 to 570 µs. Why was not looked into.
 */
export const measureAgain =
  'neither requests/s nor CPU per request is to be trusted, measure again when it is quiet';

/** A warning for a machine that others keep busy; empty for a quiet one. */
export function warnOfLoad(load: number, cores: number): string {
  if (load < cores / 2) return '';
  return `the machine was busy before this began (load ${load} on ${cores} cores): ${measureAgain}\n`;
}
