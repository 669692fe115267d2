// The commands of one section of a page: runs each as it stands, and compares what it prints with what the page shows below it.
import assert from 'node:assert/strict';
import { runBash } from '../bash.ts';
import { command } from '../command.ts';
import { eventually } from '../eventually.ts';
import type { Gateway } from '../gateway.ts';
import type { Block } from './page-blocks.ts';

/** The surroundings of a page's commands. */
export type PageRoom = {
  /** Replaces the addresses and paths of the page by those here. */
  readonly localise: (text: string) => string;
  /** Shell functions for programs that are not installed here; `dbhttpd` is always one. */
  readonly functions?: string;
};

/** Puts the address and the files of a gateway in the place of those of the pages. */
export function localiseGateway(gateway: Gateway): (text: string) => string {
  const { logfile, pidfile, configPath } = gateway.place;
  return (text) =>
    text
      .replaceAll('127.0.0.1:9090', new URL(gateway.url).host)
      .replaceAll('/var/log/dbhttpd-world.access.log', `${logfile}.access.log`)
      .replaceAll('/var/log/dbhttpd-world.log', logfile)
      .replaceAll('/run/dbhttpd-world.pid', pidfile)
      .replaceAll('/etc/dbhttpd.ini', configPath);
}

/** The commands of a section, in their order. */
export type PageCommands = {
  /** Runs the next command once. Resolves to what it printed; rejects if the page shows something else. */
  readonly run: () => Promise<string>;
  /** Runs the next command, which may be repeated, until it prints what the page shows. */
  readonly watch: () => Promise<string>;
  /** The blocks that are no commands: SQL, or what the console says. */
  readonly texts: (language: 'sql' | 'console') => readonly string[];
  /** Throws if a command of the section has not been run. */
  readonly end: () => void;
};

/** Languages of blocks between the commands. */
const besides: ReadonlySet<string> = new Set(['sql', 'console', 'ini']);

/**
 * Opens the section of this heading. A block of `sh` is a command, the `text` or `json` below it is what it prints. In `json` the page
 * may break lines that the command does not break.
 */
export function openCommands(
  blocks: readonly Block[],
  heading: string,
  { localise, functions = '' }: PageRoom,
): PageCommands {
  const own = blocks.filter((block) => block.heading === heading);
  const commands = own.filter(({ language }) => !besides.has(language));
  const prelude = `exec 2>&1; dbhttpd() { ${process.execPath} ${command} "$@"; }\n${functions}`;
  let at = 0;
  const next = () => {
    const [block, below] = [commands[at], commands[at + 1]];
    if (block === undefined) throw new Error(`${heading} has no more commands`);
    const answer = below?.language === 'sh' ? undefined : below;
    at += answer === undefined ? 1 : 2;
    const arrange = answer?.language === 'json' ? joinLines : (text: string) => text;
    const expected = asPattern(arrange(localise(answer?.text ?? '')));
    const print = async () => {
      const script = `${prelude}\n${localise(block.text)}`;
      const stdout = await runBash(script).catch((error) => {
        throw new Error(`${block.text}\nfailed and printed:\n${error.stdout}`, { cause: error });
      });
      const printed = stdout.replaceAll('\r\n', '\n');
      const text = printed === '' || printed.endsWith('\n') ? printed : `${printed}\n`;
      const isWanted = answer === undefined ? text === '' : expected.test(arrange(text));
      assert.ok(isWanted, `${block.text}\nprinted:\n${text}\nand not:\n${answer?.text ?? ''}`);
      return text;
    };
    return print;
  };
  return {
    run: () => next()(),
    watch: () => eventually('it prints what the page shows', next(), { everyMs: 500 }),
    texts: (language) => own.filter((one) => one.language === language).map(({ text }) => text),
    end: () => assert.equal(at, commands.length, `${heading}: not all of it was run`),
  };
}

const joinLines = (text: string) => `${text.replace(/\n */g, '')}\n`;

/** `…` matches anything on its line. A line with `…` alone matches any lines. */
function asPattern(text: string): RegExp {
  const parts = text
    .split(/^(…\n)|(…)/m)
    .filter((part) => part !== undefined)
    .map((part) => patterns[part] ?? part.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'));
  return new RegExp(`^${parts.join('')}$`);
}

const patterns: Readonly<Record<string, string>> = { '…': '.*', '…\n': '(?:.*\\n)*' };
