// The texts of --help and of a misuse, from the tables of options and of exit statuses.
import { exitCodes, exitMeanings } from '../shared/process/exit-codes.ts';
import { commandOptions } from './command-options.ts';

const maxColumns = 80;

const synopsis = `usage: dbhttpd -c <file> -s <sections> [-m <sections>]
       dbhttpd --check [--json] -c <file> -s <sections> [-m <sections>]
       dbhttpd --foreground -c <file> -s <sections> [-m <sections>]
       dbhttpd --primary <address> -c <file> -s <sections> [-m <sections>]
       dbhttpd --types -c <file> -s <sections> [-m <sections>]
       dbhttpd --scaffold <table> -c <file> -s <sections> [-m <sections>]
       dbhttpd --new-token
       dbhttpd --help | -h | --version | -V
`;

/** The environment variables that the command reads, with their meanings. */
export const environmentMeanings = {
  DBHTTPD_PASSWORD: "the account's password; it takes precedence over the file's",
  DBHTTPD_TOKEN: "bearer tokens, comma-separated; they take precedence over the file's",
  NOTIFY_SOCKET: 'with --foreground: report to systemd when it serves',
  LISTEN_FDS: "with LISTEN_PID: serve the socket that systemd passes on, instead of the file's",
} as const;

/** The text after a misuse: only the forms of the command. */
export const usage = `${synopsis}dbhttpd --help explains them.\n`;

/** The text of --help, at most 80 columns wide. */
export function formatHelp(): string {
  return `${synopsis}
Puts a MySQL or MariaDB database behind HTTP and JSON.

options:
${formatList(commandOptions.map(({ names, value, meaning }) => [[names.join(', '), ...(value === null ? [] : [value.shown])].join(' '), meaning]))}

A start prints nothing. Its exit status is the result, and the log has the
reason. Stop it with kill $(cat <pidfile>), and start it again at once if you
like.

exit status:
${formatList(Object.entries(exitMeanings).map(([name, meaning]) => [String(exitCodes[name as keyof typeof exitCodes]), meaning.replaceAll('`', '')]))}

environment:
${formatList(Object.entries(environmentMeanings))}

example:
  printf '[world]\\ndatabase = world\\nhost = 127.0.0.1\\nuser = app\\n' \\
    > /etc/dbhttpd.ini
  dbhttpd --check -c /etc/dbhttpd.ini -s world
  dbhttpd -c /etc/dbhttpd.ini -s world
  curl http://127.0.0.1:9090/v1/query --json '{"sql":"select 1"}'

More: man dbhttpd
`;
}

/** Terms in one column, and their meanings beside them, in as many lines as they need. */
function formatList(items: readonly (readonly [term: string, meaning: string])[]): string {
  const width = Math.max(...items.map(([term]) => term.length));
  const indent = width + 4;
  return items
    .flatMap(([term, meaning]) =>
      wrap(meaning, maxColumns - indent).map((line, index) =>
        index === 0 ? `  ${term.padEnd(width)}  ${line}` : `${' '.repeat(indent)}${line}`,
      ),
    )
    .join('\n');
}

function wrap(text: string, columns: number): readonly string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    const longer = line === '' ? word : `${line} ${word}`;
    if (line !== '' && longer.length > columns) {
      lines.push(line);
      line = word;
    } else line = longer;
  }
  return [...lines, line];
}
