// The exit statuses of the command, named (values of sysexits.h).
// Knows nothing else.

/** Exit statuses as promised to operators; the numbers follow BSD's sysexits.h. */
export const exitCodes = {
  ok: 0,
  usage: 64,
  configUnreadable: 66,
  unavailable: 69,
  cannotCreate: 73,
  alreadyRunning: 75,
  configInvalid: 78,
} as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];
