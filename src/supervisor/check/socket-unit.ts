// Systemd's socket unit of an instance: while no instance runs, systemd holds the address, and a check cannot bind it.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const answerBoundMs = 2000;

/** The name of the unit in deploy/systemd. @param served the sections after -s */
export function socketUnitOf(served: readonly string[]): string {
  return `dbhttpd@${served.join(':')}.socket`;
}

/** Whether the unit is active: its service then takes the unit's socket and binds nothing. False: it is not, or systemd does not answer. */
export async function isSocketUnitActive(unit: string): Promise<boolean> {
  const question = ['--quiet', 'is-active', unit];
  try {
    await promisify(execFile)('systemctl', question, { timeout: answerBoundMs });
    return true;
  } catch {
    // Its exit status, or there is no such command.
    return false;
  }
}
