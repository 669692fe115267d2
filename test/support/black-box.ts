// Prints what explains a failed test, or a test that hangs while it hangs: the last requests, the gateways' logs, the servers' process
// lists. Every fixture that has something to show loads it. A test that passes prints none of it.
import { afterEach, beforeEach, type SuiteContext, type TestContext } from 'node:test';

const maxLogLines = 60;
const maxRequests = 12;
const maxSources = 6;
const maxLineCharacters = 600;
/** A test that runs for longer prints its state. */
const standstillMs = 90_000;

/** Something that can say what it looks like now, such as a gateway's log or a server's process list. */
export type Source = {
  readonly name: string;
  readonly show: () => string | Promise<string>;
};

class BlackBox {
  readonly #sources: Source[] = [];
  readonly #requests: string[] = [];

  /** Keeps the source until this many newer ones exist. A source that has ended should be able to show its end. */
  add(source: Source): void {
    this.#sources.push(source);
    if (this.#sources.length > maxSources) this.#sources.shift();
  }

  recordRequest(line: string): void {
    this.#requests.push(cut(line));
    if (this.#requests.length > maxRequests) this.#requests.shift();
  }

  /** Forgets the requests: the next test begins. */
  forgetRequests(): void {
    this.#requests.length = 0;
  }

  async lines(): Promise<string[]> {
    const shown = [];
    for (const source of this.#sources) shown.push(section(source.name, await tryToShow(source)));
    return [section('the last requests', this.#requests), ...shown].flat();
  }
}

/** The black box of this process, which runs one test file. */
export const blackBox = new BlackBox();

// The runner and the long runs use the same fixtures; hooks would make a test run of theirs.
if (process.argv[1]?.endsWith('.test.js')) watchTests();

function watchTests(): void {
  const watches = new Map<unknown, NodeJS.Timeout>();
  beforeEach((t) => {
    const watch = setTimeout(() => void showStandstill(t.name), standstillMs);
    watches.set(t, watch.unref());
  });
  afterEach(async (t) => {
    clearTimeout(watches.get(t));
    watches.delete(t);
    if (hasFailed(t)) {
      for (const line of await blackBox.lines()) t.diagnostic(line);
    }
    blackBox.forgetRequests();
  });
}

// To stderr, because Node prints a test's diagnostics when it ends, and this one may never end.
async function showStandstill(name: string): Promise<void> {
  const head = `still running after ${standstillMs / 1000} s: ${name}`;
  process.stderr.write([head, ...(await blackBox.lines()), ''].join('\n'));
}

// Node's types for version 20 do not have `passed`, which 20.12 brought.
function hasFailed(context: TestContext | SuiteContext): context is TestContext {
  return 'diagnostic' in context && 'passed' in context && context.passed === false;
}

async function tryToShow({ show }: Source): Promise<string[]> {
  try {
    return (await show()).trimEnd().split('\n').slice(-maxLogLines).map(cut);
  } catch (error) {
    return [`not available: ${String(error)}`];
  }
}

function section(name: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : [`--- ${name}`, ...lines];
}

function cut(line: string): string {
  return line.length > maxLineCharacters ? `${line.slice(0, maxLineCharacters)}…` : line;
}
