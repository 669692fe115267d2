// The exit statuses of the command, with names and meanings.

/** Exit statuses. The numbers follow BSD's sysexits.h. */
export const exitCodes = {
  ok: 0,
  usage: 64,
  configUnreadable: 66,
  unavailable: 69,
  supervisorFailed: 70,
  cannotCreate: 73,
  alreadyRunning: 75,
  configInvalid: 78,
} as const;

/** The meaning of each status, in Markdown. */
export const exitMeanings = {
  ok: 'running (start), stopped cleanly (foreground), no fault (check)',
  usage: 'the command line is wrong',
  configUnreadable: 'the configuration file cannot be read',
  unavailable:
    'cannot listen, for example because the address is in use; the inherited socket cannot be served; a worker does not listen in time, or workers keep dying at boot; a stop came before every worker listened; with `--check` also: no server of a section can be reached; with `--types` and `--scaffold`: no server that is needed can be reached; with `--primary`: the server cannot be reached; the command itself failed',
  supervisorFailed:
    'the supervisor failed while it ran, by a fault of its own: its workers end, and the log has the stack',
  cannotCreate:
    'pidfile or log cannot be created; with `--primary`: the file of the last primary cannot be written',
  alreadyRunning:
    'this instance is already running; with `--primary`: it runs and does not accept the order',
  configInvalid:
    'the configuration is invalid; with `--check` also: `init_sql` is refused or changes the character set, or `idempotency_table` cannot be used; with `--types` also: a named statement is faulty, or there is none; with `--scaffold` also: there is no such table; with `--primary` also: no section has several servers with this address among them, the server belongs to a cluster, or the running instance refuses the order',
} as const satisfies Readonly<Record<keyof typeof exitCodes, string>>;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];
