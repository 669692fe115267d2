// Orphans: workers of this instance whose supervisor is dead. They are found by their marks, checked twice, and killed.
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { drainingSupervisor, instanceOf } from './claim.ts';

/** The marks of a worker, in its environment. */
export type Marks = { readonly DBHTTPD_INSTANCE: string; readonly DBHTTPD_SUPERVISOR: string };

/** The marks of workers that this process forks. */
export function ownMarks(instance: string): Marks {
  const started = startTime(process.pid);
  return { DBHTTPD_INSTANCE: instance, DBHTTPD_SUPERVISOR: `${process.pid}:${started ?? ''}` };
}

const goneBoundMs = 2000;
const pollMs = 10;

/**
 * Kills the orphans of a pidfile's instance, and waits until they and exiting workers are gone. Returns the ids of the killed ones.
 * The caller holds the claim. The drain lock identifies workers that drain, even if their supervisor cannot be seen from here.
 */
export async function endOrphans(pidfile: string): Promise<readonly number[]> {
  const instance = instanceOf(pidfile);
  const draining = await drainingSupervisor(pidfile);
  const isOrphan = (pid: number) => isOrphanOf(pid, instance, draining);
  const ended = findProcesses(isOrphan).filter(({ pid, started }) => {
    // Checked again just before, because the id may belong to another process now.
    if (startTime(pid) !== started || !isOrphan(pid)) return false;
    return kill(pid);
  });
  const awaited = [...ended, ...findProcesses(isLeaving)];
  const deadline = performance.now() + goneBoundMs;
  const isThere = ({ pid, started }: Found) => startTime(pid) === started && !isZombie(pid);
  while (awaited.some(isThere) && performance.now() < deadline) await delay(pollMs);
  return ended.map(({ pid }) => pid);
}

type Found = { readonly pid: number; readonly started: string };

/** Whether a worker of any instance is exiting: the kernel has freed its memory, and with it its marks, but not yet its sockets. */
function isLeaving(pid: number): boolean {
  return (
    commandOf(pid)?.startsWith('dbhttpd: worker') === true &&
    read(`/proc/${pid}/environ`) === '' &&
    !isZombie(pid)
  );
}

function commandOf(pid: number): string | null {
  return read(`/proc/${pid}/comm`);
}

function findProcesses(isMeant: (pid: number) => boolean): readonly Found[] {
  return readdirSync('/proc').flatMap((name) => {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid || !isMeant(pid)) return [];
    const started = startTime(pid);
    return started === null ? [] : [{ pid, started }];
  });
}

function isOrphanOf(pid: number, instance: string, draining: string | null): boolean {
  // Only the same user can read it, which is intended. Root can read all, and the instance contains the user.
  const marks = read(`/proc/${pid}/environ`)?.split('\0') ?? [];
  if (!marks.includes(`DBHTTPD_INSTANCE=${instance}`)) return false;
  const supervisor = /^DBHTTPD_SUPERVISOR=(\d+):(\d+)$/;
  const match = marks.map((mark) => supervisor.exec(mark)).find((found) => found !== null);
  if (match === undefined || match === null) return false;
  if (draining === `${match[1]}:${match[2]}`) return false;
  const supervisorPid = Number(match[1]);
  // A zombie is dead, even if a container's first process never reaps it.
  return startTime(supervisorPid) !== match[2] || isZombie(supervisorPid);
}

function kill(pid: number): boolean {
  try {
    return process.kill(pid, 'SIGKILL');
  } catch {
    return false;
  }
}

/** When a process started, in the kernel's ticks since boot. Null: there is no such process. */
function startTime(pid: number): string | null {
  return statFields(pid)?.[19] ?? null;
}

function isZombie(pid: number): boolean {
  return statFields(pid)?.[0] === 'Z';
}

/** The fields after the command's name, which may contain spaces and brackets. The first is the state. */
function statFields(pid: number): readonly string[] | null {
  const stat = read(`/proc/${pid}/stat`);
  return stat?.slice(stat.lastIndexOf(')') + 2).split(' ') ?? null;
}

function read(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}
