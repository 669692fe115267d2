// The pane for a query: its text, its options, and its result.
import type { Stats } from '../shared/observe/stats.ts';
import { type Ask, type AskError, asAskError } from './ask.ts';
import { copyText, saveFile } from './copy.ts';
import { element, find, setText } from './elements.ts';
import { formatClock, formatCount, formatCurl, formatSpan } from './format.ts';
import { openHistory } from './history.ts';
import { type Reply, readReply } from './reply.ts';
import { createResultTable, type Result } from './result.ts';

/** The longest text that is shown raw: browsers cannot lay out more at once. */
const maxRawChars = 400_000;

/** The pane. */
export type QueryPane = {
  readonly focus: () => void;
  /** Learns the names of the sections. */
  readonly show: (stats: Stats) => void;
};

/** @param needsToken whether requests need a token */
export function openQueryPane(ask: Ask, needsToken: () => boolean): QueryPane {
  const sql = find('sql', HTMLTextAreaElement);
  const section = find('query-section', HTMLSelectElement);
  const rows = find('query-rows', HTMLSelectElement);
  const readOnly = find('query-read-only', HTMLInputElement);
  const output = new Output();
  const start = openRunner(sql, output);

  const note = openHistory((entry) => {
    sql.value = entry.sql;
    if ([...section.options].some(({ value }) => value === entry.section))
      section.value = entry.section;
    sql.focus();
  });
  const body = (isReadOnly: boolean) =>
    JSON.stringify({
      sql: sql.value,
      ...(isReadOnly && { read_only: true }),
      max_rows: Number(rows.value),
      json: 'string',
      ...(section.value !== '' && { section: section.value }),
    });
  const runStatement = () =>
    start(async (signal) => {
      note({ sql: sql.value, section: section.value, at: Date.now() });
      const startedAt = performance.now();
      output.begin();
      const accept = 'application/x-ndjson, application/json;q=0.9';
      const asked = { method: 'POST', body: body(readOnly.checked), accept, signal };
      const response = await ask('/v1/query', asked);
      const reply = await readReply(response, output);
      output.finish(reply, response, performance.now() - startedAt);
    });
  const download = () =>
    start(async (signal) => {
      output.wait(0);
      const asked = { method: 'POST', body: body(true), accept: 'text/csv', signal };
      const response = await ask('/v1/query', asked);
      saveFile(`${section.value || 'result'}.csv`, await response.blob());
      output.report('The rows were read again, READ ONLY, and saved as CSV.');
    });
  const copyCurl = async () => {
    const place = { origin: window.location.origin, needsToken: needsToken() };
    const command = formatCurl(place, body(readOnly.checked));
    if (await copyText('The same with curl', command)) output.report('The command was copied.');
  };

  find('query-form', HTMLFormElement).addEventListener('submit', (event) => {
    event.preventDefault();
    void runStatement();
  });
  sql.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    void runStatement();
  });
  find('query-csv', HTMLButtonElement).addEventListener('click', () => void download());
  find('query-curl', HTMLButtonElement).addEventListener('click', () => void copyCurl());
  return {
    focus: () => sql.focus(),
    show: (stats) => showSections(section, stats),
  };
}

/** Runs one task at a time, which the button Stop aborts. Nothing runs while there is no statement. */
function openRunner(sql: HTMLTextAreaElement, output: Output) {
  const run = find('run', HTMLButtonElement);
  const stop = find('stop', HTMLButtonElement);
  let running: AbortController | null = null;
  stop.addEventListener('click', () => running?.abort());
  return async (task: (signal: AbortSignal) => Promise<void>): Promise<void> => {
    if (running !== null) return;
    if (sql.value.trim() === '') {
      output.fail('Write a statement first.');
      sql.focus();
      return;
    }
    running = new AbortController();
    [run.disabled, stop.disabled] = [true, false];
    const startedAt = performance.now();
    const clock = window.setInterval(() => output.wait(performance.now() - startedAt), 250);
    try {
      await task(running.signal);
    } catch (error) {
      output.refuse(asAskError(error));
    } finally {
      window.clearInterval(clock);
      running = null;
      [run.disabled, stop.disabled] = [false, true];
    }
  };
}

function showSections(list: HTMLSelectElement, { section, backends }: Stats): void {
  const names = [...new Set([section, ...backends.map((backend) => backend.section)])];
  const known = [...list.options].map(({ value }) => value);
  if (names.join('\n') === known.join('\n')) return;
  const chosen = list.value;
  list.replaceChildren(...names.map((name) => element('option', { value: name }, name)));
  if (names.includes(chosen)) list.value = chosen;
}

/** The result of a statement. */
class Output {
  readonly #message = find('query-notice', HTMLElement);
  readonly #place = find('query-result', HTMLElement);
  readonly #rawSwitch = find('query-raw', HTMLButtonElement);
  #tables: ReturnType<typeof createResultTable>[] = [];
  #results: readonly Result[] = [];
  #isRaw = false;
  #isDrawing = false;

  constructor() {
    this.#rawSwitch.addEventListener('click', () => {
      this.#isRaw = !this.#isRaw;
      this.#rawSwitch.setAttribute('aria-pressed', String(this.#isRaw));
      this.#draw();
    });
  }

  begin(): void {
    this.#results = [];
    this.#draw();
    this.wait(0);
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

  finish({ results, effects }: Reply, response: Response, ms: number): void {
    // The table of a stream exists already.
    if (results.length !== 1 || results[0]?.lines !== this.#results[0]?.lines) {
      this.#results = results;
      this.#draw();
    } else {
      for (const table of this.#tables) table.grow();
    }
    const timing = response.headers.get('Server-Timing');
    const parts = [
      ...results.map(({ lines, isTruncated }) => {
        const rows = `${formatCount(lines.length)} ${lines.length === 1 ? 'row' : 'rows'}`;
        return isTruncated ? `${rows}, cut: there are more` : rows;
      }),
      ...effects,
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

  #draw(): void {
    this.#rawSwitch.disabled = this.#results.length === 0;
    this.#tables = [];
    if (this.#isRaw) {
      this.#place.replaceChildren(...this.#results.map(createRaw));
      return;
    }
    this.#tables = this.#results.map((result, at) => {
      const name = this.#results.length === 1 ? 'Result' : `Result ${at + 1}`;
      return createResultTable(result, name);
    });
    this.#place.replaceChildren(...this.#tables.map(({ frame }) => frame));
    for (const table of this.#tables) table.grow();
  }
}

/** `queue;dur=0.1, db;dur=3.2` in words. */
function describeTiming(header: string): string {
  const parts = [...header.matchAll(/(\w+);dur=([\d.]+)/g)];
  return parts.map(([, name, ms]) => `${name} ${formatSpan(Number(ms))}`).join(', ');
}

/** A result as JSON. */
function createRaw({ columns, lines }: Result): HTMLElement {
  const text = `{"columns":${JSON.stringify(columns)},\n"rows":[\n${lines.join(',\n')}]}`;
  const isCut = text.length > maxRawChars;
  const shown = isCut ? `${text.slice(0, maxRawChars)}\n… cut here, for this page only` : text;
  return element(
    'pre',
    { class: 'frame raw', tabindex: 0, role: 'region', 'aria-label': 'Raw JSON' },
    shown,
  );
}
