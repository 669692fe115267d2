// Systemd's socket unit of a section: while no instance runs, systemd holds the address, and a check cannot bind it.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const answerBoundMs = 2000;

/** The name of the unit in deploy/systemd. */
export function socketUnitOf(section: string): string {
  return `dbhttpd@${section}.socket`;
}

/** Whether a section's unit is active: its service then takes the unit's socket and binds nothing. False: it is not, or systemd does not answer. */
export async function isSocketUnitActive(section: string): Promise<boolean> {
  const question = ['--quiet', 'is-active', socketUnitOf(section)];
  try {
    await promisify(execFile)('systemctl', question, { timeout: answerBoundMs });
    return true;
  } catch {
    // Its exit status, or there is no such command.
    return false;
  }
}
