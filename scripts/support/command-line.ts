// Command lines of scripts: a mistake of the user becomes a fault, which is printed with the help text and ends with 64.

/** The exit status for a wrong command line (sysexits.h). */
const misuseStatus = 64;

/** A mistake in the command line. */
export class Fault extends Error {}

/** A command line that is wrong, or that requests the help text. */
export type NoRun =
  | { readonly kind: 'help' }
  | { readonly kind: 'fault'; readonly message: string };

/** Reads a command line. A `Fault` of `read` and a complaint of parseArgs become faults; other errors are thrown. */
export function readCommand<Command>(read: () => Command): Command | NoRun {
  try {
    return read();
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const isFault = error instanceof Fault || code?.startsWith('ERR_PARSE_ARGS') === true;
    if (!isFault) throw error;
    return { kind: 'fault', message };
  }
}

/** The words of a comma-separated list. @throws Fault for an unknown one */
export function readList(name: string, text: string, known: readonly string[]): readonly string[] {
  const words = text.split(',').map((word) => word.trim());
  const unknown = words.find((word) => !known.includes(word));
  if (unknown === undefined) return words;
  throw new Fault(`--${name}: unknown "${unknown}"; known: ${known.join(', ')}`);
}

/** Prints the help text, after the fault if there is one. Returns the exit status. */
export function explain(command: NoRun, help: string): number {
  if (command.kind === 'help') {
    process.stdout.write(help);
    return 0;
  }
  process.stderr.write(`${command.message}\n\n${help}`);
  return misuseStatus;
}
