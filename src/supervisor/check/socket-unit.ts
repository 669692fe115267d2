// Systemd's socket units of the gateway: while no instance runs, systemd holds the address in `listen`, and a check cannot bind it.
import { execFile } from 'node:child_process';
import type { ListenAddress } from '../../shared/config/addresses.ts';

/** A user may ask systemd for this. Only root can see that it is process 1 which holds a socket, and another program's unit may listen there. */
const question = [
  'show',
  '--property=Id',
  '--property=ActiveState',
  '--property=Listen',
  'dbhttpd*.socket',
];
const answerBoundMs = 2000;

/** The active socket unit `dbhttpd….socket` at an address. Null: there is none, or no systemd that answers. */
export function findSocketUnit(listen: ListenAddress): Promise<string | null> {
  return new Promise((resolve) => {
    execFile('systemctl', question, { timeout: answerBoundMs }, (error, stdout) => {
      resolve(error === null ? parseSocketUnits(stdout, listen) : null);
    });
  });
}

/** Finds the active unit at an address in what systemctl(1) shows of socket units. Exported for its test. */
export function parseSocketUnits(text: string, listen: ListenAddress): string | null {
  for (const unit of text.split('\n\n')) {
    const lines = unit.split('\n');
    const id = lines.find((line) => line.startsWith('Id='));
    const isThere = lines.some((line) => isAt(/^Listen=(.+) \(Stream\)$/.exec(line)?.[1], listen));
    if (id !== undefined && isThere && lines.includes('ActiveState=active')) return id.slice(3);
  }
  return null;
}

/** The port decides: a unit on another address of this machine takes the place of `listen` too. */
function isAt(place: string | undefined, listen: ListenAddress): boolean {
  return listen.kind === 'unix'
    ? place === listen.path
    : place?.endsWith(`:${listen.port}`) === true;
}
