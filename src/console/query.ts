// The pane for a query: its text, its options, its plan, and its result.
import { type Ask, AskError } from './ask.ts';
import { copyText, saveFile } from './copy.ts';
import { writeCsv } from './csv.ts';
import { element, find } from './elements.ts';
import { formatCurl, formatRows } from './format.ts';
import { openHistory } from './history.ts';
import { Output, openTasks } from './output.ts';
import { type ReplyEvents, readReply } from './reply.ts';

/** The pane. */
export type QueryPane = {
  readonly focus: () => void;
  /** Takes the names of the sections that may be chosen; none: they are not known. */
  readonly offer: (sections: readonly string[]) => void;
  /** Ends what runs, and drops the results and the history: another client must not see them. */
  readonly forget: () => void;
  /** The section that is chosen; '': the first. */
  readonly section: () => string;
  /** Replaces the text, which the history keeps, and runs it. */
  readonly open: (sql: string) => void;
  /** Writes a word where the cursor is. */
  readonly insert: (word: string) => void;
};

/** A statement that shows a plan by itself, and may execute what it explains. */
const isPlan = /^\s*(?:explain|describe|desc|analyze)\b/i;
/** MariaDB does not even explain a write READ ONLY. With EXPLAIN directly before it, it is not executed. */
const isWrite = /^\s*(?:insert|replace|update|delete)\b/i;

const unwatched: ReplyEvents = { columns: () => {}, rows: () => {} };

/** @param needsToken whether requests need a token. @param chosen called when another section is chosen */
export function openQueryPane(ask: Ask, needsToken: () => boolean, chosen: () => void): QueryPane {
  const sql = find('sql', HTMLTextAreaElement);
  const section = find('query-section', HTMLSelectElement);
  const rows = find('query-rows', HTMLSelectElement);
  const readOnly = find('query-read-only', HTMLInputElement);
  const output = new Output({
    message: find('query-notice', HTMLElement),
    result: find('query-result', HTMLElement),
    raw: find('query-raw', HTMLButtonElement),
  });
  const [run, stop] = [find('run', HTMLButtonElement), find('stop', HTMLButtonElement)];
  const tasks = openTasks({ run, stop, output });
  const history = openHistory((entry) => {
    sql.value = entry.sql;
    choose(entry.section);
    sql.focus();
  });
  const choose = (name: string) => {
    const isOffered = [...section.options].some(({ value }) => value === name);
    if (!isOffered || section.value === name) return;
    section.value = name;
    chosen();
  };
  const keep = () => history.note({ sql: sql.value, section: section.value });

  /** Begins nothing while there is no statement. */
  const start = async (task: (signal: AbortSignal) => Promise<void>) => {
    if (sql.value.trim() !== '') return await tasks.start(task);
    output.fail('Write a statement first.');
    sql.focus();
  };
  const body = (isReadOnly: boolean, text = sql.value) =>
    JSON.stringify({
      sql: text,
      ...(isReadOnly && { read_only: true }),
      max_rows: Number(rows.value),
      json: 'string',
      ...(section.value !== '' && { section: section.value }),
    });
  const send = (text: string, signal: AbortSignal) => {
    const accept = 'application/x-ndjson, application/json;q=0.9';
    return ask('/v1/query', { method: 'POST', body: text, accept, signal });
  };
  const runBody = (text: string, events: ReplyEvents) =>
    start(async (signal) => {
      keep();
      const startedAt = performance.now();
      output.begin();
      const response = await send(text, signal);
      const reply = await readReply(response, events);
      output.finish(reply, response, performance.now() - startedAt);
    });
  const runStatement = () => runBody(body(readOnly.checked), output);
  // The types of a plan's columns only take room.
  const explain = () => {
    const text = isPlan.test(sql.value) ? sql.value : `explain ${sql.value}`;
    return runBody(body(!isWrite.test(sql.value), text), {
      columns: ({ columns, lines }) =>
        output.columns({ columns: columns.map(({ name }) => ({ name, type: '' })), lines }),
      rows: output.rows,
    });
  };
  const download = () =>
    start(async (signal) => {
      output.wait(0);
      const { results } = await readReply(await send(body(true), signal), unwatched);
      const [result] = results;
      if (result === undefined) throw new AskError(0, 'The statement has no rows to save.');
      const file = new Blob([writeCsv(result)], { type: 'text/csv' });
      saveFile(`${section.value || 'result'}.csv`, file);
      const count = formatRows(result.lines.length, result.isTruncated);
      output.report(`The rows were read again, READ ONLY, and saved as CSV: ${count}.`);
    });
  const copyCurl = async () => {
    const place = { origin: window.location.origin, needsToken: needsToken() };
    const command = formatCurl(place, '/v1/query', body(readOnly.checked));
    if (await copyText('The same with curl', command)) output.report('The command was copied.');
  };

  find('query-form', HTMLFormElement).addEventListener('submit', (event) => {
    event.preventDefault();
    void runStatement();
  });
  sql.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    void (event.shiftKey ? explain() : runStatement());
  });
  find('explain', HTMLButtonElement).addEventListener('click', () => void explain());
  find('query-csv', HTMLButtonElement).addEventListener('click', () => void download());
  find('query-curl', HTMLButtonElement).addEventListener('click', () => void copyCurl());
  section.addEventListener('change', chosen);
  return {
    focus: () => sql.focus(),
    offer: (names) => showSections(section, names),
    forget: () => {
      tasks.abort();
      output.clear();
      history.clear();
    },
    section: () => section.value,
    open: (text) => {
      if (tasks.isHeldUp()) return;
      if (sql.value.trim() !== '') keep();
      sql.value = text;
      sql.focus();
      void runStatement();
    },
    insert: (word) => {
      sql.setRangeText(word, sql.selectionStart, sql.selectionEnd, 'end');
      sql.focus();
    },
  };
}

function showSections(list: HTMLSelectElement, names: readonly string[]): void {
  const known = [...list.options].map(({ value }) => value);
  if (names.join('\n') === known.join('\n')) return;
  const chosen = list.value;
  list.replaceChildren(...names.map((name) => element('option', { value: name }, name)));
  if (names.includes(chosen)) list.value = chosen;
}
