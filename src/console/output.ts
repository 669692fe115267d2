// The place of a result: a message, and the rows as tables, as one object, or raw.
import { type AskError, asAskError } from './ask.ts';
import { element, setText } from './elements.ts';
import { formatClock, formatCount, formatRows, formatSpan } from './format.ts';
import type { Reply } from './reply.ts';
import { createRecord, createResultTable, type Result } from './result.ts';

/** The longest text that is shown raw: browsers cannot lay out more at once. */
const maxRawChars = 400_000;

/** The elements of the page that an output fills. */
export type OutputPlaces = {
  readonly message: HTMLElement;
  readonly result: HTMLElement;
  /** Switches between tables and JSON. */
  readonly raw: HTMLButtonElement;
};

/** The result of a statement or of a call. */
export class Output {
  readonly #message: HTMLElement;
  readonly #place: HTMLElement;
  readonly #rawSwitch: HTMLButtonElement;
  #tables: ReturnType<typeof createResultTable>[] = [];
  #results: readonly (Result & { readonly name?: string })[] = [];
  /** The text of the reply; null: it is made of the rows. */
  #text: string | null = null;
  #isRaw = false;
  #isDrawing = false;

  constructor({ message, result, raw }: OutputPlaces) {
    this.#message = message;
    this.#place = result;
    this.#rawSwitch = raw;
    raw.addEventListener('click', () => {
      this.#isRaw = !this.#isRaw;
      raw.setAttribute('aria-pressed', String(this.#isRaw));
      this.#draw();
    });
  }

  begin(): void {
    this.clear();
    this.wait(0);
  }

  /** Shows nothing. */
  clear(): void {
    this.#results = [];
    this.#text = null;
    this.#draw();
    this.report('');
  }

  wait(ms: number): void {
    const rows = this.#results[0]?.lines.length ?? 0;
    const so = rows === 0 ? '' : `, ${formatCount(rows)} rows so far`;
    // The text changes every second only, since each change is announced.
    this.#say(`Running for ${formatSpan(1000 * Math.floor(ms / 1000))}${so} …`, 'busy');
  }

  readonly columns = (result: Result): void => {
    this.#results = [result];
    this.#draw();
  };

  readonly rows = (): void => {
    if (this.#isDrawing || this.#isRaw) return;
    this.#isDrawing = true;
    requestAnimationFrame(() => {
      this.#isDrawing = false;
      for (const table of this.#tables) table.grow();
    });
  };

  finish({ results, effects, text }: Reply, response: Response, ms: number): void {
    this.#text = text ?? null;
    // The table of a stream exists already.
    if (results.length !== 1 || results[0]?.lines !== this.#results[0]?.lines) {
      this.#results = results;
      this.#draw();
    } else this.#showRows();
    const timing = response.headers.get('Server-Timing');
    const wasReplayed = response.headers.has('Idempotency-Replayed');
    const parts = [
      ...results.map(({ lines, isTruncated }) => formatRows(lines.length, isTruncated)),
      ...effects,
      ...(wasReplayed ? ['the first reply to this key: nothing was executed again'] : []),
      `${formatSpan(ms)}${timing === null ? '' : ` (${describeTiming(timing)})`}`,
      `request ${response.headers.get('X-Request-ID') ?? 'without id'}`,
      formatClock(new Date()),
    ];
    this.#say(parts.join(' · '), 'good');
  }

  report(text: string): void {
    this.#say(text, 'good');
  }

  fail(text: string): void {
    this.#say(text, 'bad');
  }

  /** Keeps the rows that have arrived; the message above them says that they are incomplete. */
  refuse({ status, message, problem }: AskError): void {
    this.#showRows();
    const { code, errno, outcome, request_id } = problem;
    const parts = [
      message,
      ...(code === undefined
        ? []
        : [errno === undefined || errno === null ? code : `${code} (${errno})`]),
      ...(status === 0 ? [] : [`status ${status}`]),
      ...(outcome === undefined ? [] : [`outcome: ${outcome.replaceAll('_', ' ')}`]),
      ...(request_id === undefined ? [] : [`request ${request_id}`]),
    ];
    this.#say(parts.join(' · '), 'bad');
  }

  #say(text: string, tone: 'good' | 'bad' | 'busy'): void {
    setText(this.#message, text);
    this.#message.className = `notice ${tone}`;
  }

  /** Shows the rows that have arrived since. As raw JSON they are drawn as one text. */
  #showRows(): void {
    if (this.#isRaw) this.#draw();
    else for (const table of this.#tables) table.grow();
  }

  #draw(): void {
    this.#rawSwitch.disabled = this.#results.length === 0 && this.#text === null;
    this.#tables = [];
    if (this.#isRaw) {
      const texts = this.#text === null ? this.#results.map(rawText) : [this.#text];
      this.#place.replaceChildren(...texts.map(createRaw));
      return;
    }
    const shown = this.#results.map((result, at) => {
      if (result.isObject === true) return createRecord(result);
      const numbered = this.#results.length === 1 ? 'Result' : `Result ${at + 1}`;
      const table = createResultTable(result, result.name ?? numbered);
      this.#tables.push(table);
      return table.frame;
    });
    this.#place.replaceChildren(...shown);
    for (const table of this.#tables) table.grow();
  }
}

/** The controls of a task that takes a while. */
export type TaskControls = {
  readonly run: HTMLButtonElement;
  readonly stop: HTMLButtonElement;
  readonly output: Output;
  /** Called with the failure of a task, which the output shows. */
  readonly failed?: (error: AskError) => void;
};

/** Tasks that run one at a time. */
export type Tasks = {
  readonly start: (task: (signal: AbortSignal) => Promise<void>) => Promise<void>;
  /** Whether a task runs, which the reader has to stop first: leads to the button for that. */
  readonly isHeldUp: () => boolean;
  readonly abort: () => void;
};

/** Runs tasks, which the button Stop aborts. */
export function openTasks({ run, stop, output, failed }: TaskControls): Tasks {
  let running: AbortController | null = null;
  const abort = () => running?.abort();
  const isHeldUp = () => {
    if (running !== null) stop.focus();
    return running !== null;
  };
  stop.addEventListener('click', abort);
  const start: Tasks['start'] = async (task) => {
    if (isHeldUp()) return;
    running = new AbortController();
    [run.disabled, stop.disabled] = [true, false];
    const startedAt = performance.now();
    const clock = window.setInterval(() => output.wait(performance.now() - startedAt), 250);
    try {
      await task(running.signal);
    } catch (cause) {
      const error = asAskError(cause);
      output.refuse(error);
      failed?.(error);
    } finally {
      window.clearInterval(clock);
      running = null;
      [run.disabled, stop.disabled] = [false, true];
    }
  };
  return { start, isHeldUp, abort };
}

/** `queue;dur=0.1, db;dur=3.2` in words. */
function describeTiming(header: string): string {
  const parts = [...header.matchAll(/\b(\w+);dur=([\d.]+)/g)];
  return parts.map(([, name, ms]) => `${name} ${formatSpan(Number(ms))}`).join(', ');
}

function rawText({ columns, lines }: Result): string {
  return `{"columns":${JSON.stringify(columns)},\n"rows":[\n${lines.join(',\n')}]}`;
}

function createRaw(text: string): HTMLElement {
  const isCut = text.length > maxRawChars;
  const shown = isCut ? `${text.slice(0, maxRawChars)}\n… cut here, for this page only` : text;
  return element(
    'pre',
    { class: 'frame raw', tabindex: 0, role: 'region', 'aria-label': 'Raw JSON' },
    shown,
  );
}
