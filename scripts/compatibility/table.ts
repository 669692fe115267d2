// The matrix as text: a table of passed / failed / skipped, then what failed and what was skipped.
import type { Tally } from './tap.ts';

/** A cell that was run. */
export type Outcome = {
  readonly server: string;
  readonly node: string;
  readonly tally: Tally;
};

/** Renders the table; a combination that was not run is an empty place. Ends with the sum of all cells. */
export function renderMatrix(outcomes: readonly Outcome[]): string {
  const servers = [...new Set(outcomes.map(({ server }) => server))];
  const nodes = [...new Set(outcomes.map(({ node }) => node))].sort();
  const find = (server: string, node: string) =>
    outcomes.find((outcome) => outcome.server === server && outcome.node === node)?.tally;
  const rows = [
    ['passed / failed / skipped', ...nodes],
    ...servers.map((server) => [server, ...nodes.map((node) => renderTally(find(server, node)))]),
  ];
  const widths = rows[0]?.map((_, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  );
  const table = rows.map((row) =>
    row
      .map((text, column) => text.padEnd(widths?.[column] ?? 0))
      .join('   ')
      .trimEnd(),
  );
  const sum = (count: (tally: Tally) => number) =>
    outcomes.reduce((total, { tally }) => total + count(tally), 0);
  return [
    ...table,
    ...listNames(outcomes, 'failed', ({ failures }) => failures),
    ...listNames(outcomes, 'skipped', ({ skips }) => skips),
    '',
    `${sum(({ passed }) => passed)} passed, ${sum(({ failed }) => failed)} failed, ${sum(({ skipped }) => skipped)} skipped`,
  ].join('\n');
}

function renderTally(tally: Tally | undefined): string {
  return tally === undefined ? '' : `${tally.passed} / ${tally.failed} / ${tally.skipped}`;
}

function listNames(
  outcomes: readonly Outcome[],
  what: string,
  choose: (tally: Tally) => readonly string[],
): string[] {
  return outcomes.flatMap(({ server, node, tally }) => {
    const names = choose(tally);
    return names.length === 0
      ? []
      : ['', `${what}: ${server}, ${node}`, ...names.map((name) => `  ${name}`)];
  });
}
